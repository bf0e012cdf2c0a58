/* Values that no later step reads become zero, so that states which differ only by them are one. */
#pragma once

#include "actions.h"

namespace model::moves
{

/* Only a slot's reader reads the WAL. */
inline void forget_wal(Server& server, Server& reader)
{
    if (server.slot.is_there)
        return;
    for (Image* image : {&server.now, &server.disk}) {
        image->length = image->noted = 0;
        image->wal = {};
    }
    reader.now.applied = reader.disk.applied = 0;
}

inline void forget_unread(State& state)
{
    forget_wal(state.servers[0], state.servers[1]);
    forget_wal(state.servers[1], state.servers[0]);
    if (state.crashes_left > 0)
        return;
    /* Without a crash a flush has one effect: the walsender goes on. */
    for (std::size_t i = 0; i < kServers; ++i)
        flush(state, i);
}

} // namespace model::moves
