/*
 * Values that no later step reads become zero, so that states which differ only by them are one. No
 * step and no finding depends on them.
 */
#pragma once

#include "commands.h"

namespace model
{

/* A crash ends with the tuple of the last flushed record: those before it do not count. */
inline void forget_replaced_records(Wal& wal)
{
    bool is_replaced = false;
    for (std::size_t i = wal.flushed; i > wal.control_redo; --i) {
        if (is_replaced)
            wal.records[i] = {};
        is_replaced = is_replaced || wal.records[i].is_present();
    }
}

/* Only a crash reads the disk and the WAL's records. Without one, an ID that is not above another
 * is out of order, whatever was seen or committed. */
inline void forget_crash(State& state)
{
    state.disk = {};
    state.wal.records = {};
    state.wal.control_redo = 0;
    Seen& seen = state.seen;
    if (seen.durable <= seen.drawn)
        seen.durable = 0;
    for (SeenBlock& block : seen.blocks)
        if (block.last <= seen.drawn)
            block = {};
    put_in_order(seen);
    for (Session& session : state.sessions)
        session.last_seen = session.last_seen != 0; /* only whether it is in a transaction */
}

inline void forget_unread(State& state)
{
    for (Session& session : state.sessions)
        if (session.record <= state.wal.flushed) /* make_durable() does nothing then */
            session.record = 0;
    if (state.crashes_left > 0 && state.draws_left > 0)
        forget_replaced_records(state.wal);
    else
        forget_crash(state);
}

} // namespace model
