/*
 * What else may be done to a sequence: its page is copied, or core's own functions are called, or
 * snowflake_advance(). Each is one step, in a transaction that commits durably; the lock on the
 * relation keeps open transactions that have drawn away from a copy.
 */
#pragma once

#include "server_steps.h"

namespace model
{

enum class Copy {
    set_unlogged,       /* ALTER SEQUENCE ... SET UNLOGGED */
    set_logged,         /* ALTER SEQUENCE ... SET LOGGED */
    restart,            /* ALTER SEQUENCE ... RESTART */
    pages,              /* CREATE DATABASE ... STRATEGY wal_log, seen from the copy */
    files,              /* ... STRATEGY file_copy */
    end_of_skipped_wal, /* wal_level=minimal: the commit that logs the page */
    synced_instead,     /* ... or writes and syncs its file */
};

inline bool is_quiet(const State& state)
{
    return std::none_of(state.sessions.begin(), state.sessions.end(), is_in_transaction);
}

/* The creating transaction is the first session's: nobody else can see the sequence. */
inline bool is_creators_commit(Copy copy)
{
    return copy == Copy::end_of_skipped_wal || copy == Copy::synced_instead;
}

inline bool can_copy(const State& state, Copy copy)
{
    if (state.copies_left == 0)
        return false;
    switch (copy) {
    case Copy::set_logged:
        return is_quiet(state) && !state.needs_wal;
    case Copy::set_unlogged:
    case Copy::restart:
    case Copy::pages:
    case Copy::files:
        return is_quiet(state) && state.needs_wal;
    case Copy::end_of_skipped_wal:
    case Copy::synced_instead:
        return !state.needs_wal && can_commit(state.sessions[0]);
    }
    return false;
}

/* The copy is a file of its own: no record of the old one is replayed into it. */
inline void copy_page(State& state, Copy copy)
{
    --state.copies_left;
    Wal& wal = state.wal;
    wal.records = {};
    state.needs_wal = copy != Copy::set_unlogged;
    state.is_needed = false;
    switch (copy) {
    case Copy::set_unlogged:
        state.page.lsn = 0;
        state.disk = {};
        state.is_dirty = true;
        break;
    case Copy::restart:
        state.page.tuple = {1, 0, false, state.page.tuple.kept};
        [[fallthrough]];
    case Copy::set_logged:
    case Copy::pages:
    case Copy::end_of_skipped_wal: /* the tuple goes into the record as it stands on the page */
        state.page.lsn = insert_record(wal, state.page.tuple);
        state.disk = {};
        state.is_dirty = true;
        break;
    case Copy::synced_instead:
        state.page.lsn = 0;
        state.disk = state.page;
        state.is_dirty = false;
        break;
    case Copy::files: /* between two checkpoints; the LSN comes along */
        state.disk = state.page;
        state.is_dirty = false;
        state.phase = CheckpointPhase::none;
        state.next_redo = 0;
        wal.redo = wal.control_redo = wal.inserted;
        break;
    }
    flush_up_to(wal, wal.inserted);
    if (is_creators_commit(copy))
        commit(state, 0);
}

/* Each in a transaction of its own. */
enum class Call {
    nextval,
    setval_ahead,         /* setval(sequence, later than all that was drawn, false) */
    setval_back,          /* setval(sequence, 1) */
    setval_back_uncalled, /* setval(sequence, 1, false) */
    advance,              /* snowflake_advance(), past what the first draw makes */
};

/* Ahead of two clocks, and not drawn yet; what the first ID of kStart is advanced past. */
constexpr Small kSetTo = 5003 * 1024 + 7;
constexpr Small kAdvanceTo = 5000 * 1024 + 1023;

inline bool can_call(const State& state, Call call)
{
    if (state.calls_left == 0 || !state.needs_wal || state.locked_by != 0)
        return false;
    const Small position = state.page.tuple.position;
    if (call == Call::setval_ahead)
        return position < kSetTo;
    return call != Call::advance || position < kAdvanceTo;
}

inline void log_for_core(State& state, const Tuple& in_record)
{
    state.page.lsn = insert_record(state.wal, in_record);
    flush_up_to(state.wal, state.page.lsn);
}

/* do_setval() */
inline void setval(State& state, Small position, bool is_called)
{
    state.page.tuple = {position, 0, is_called, state.page.tuple.kept};
    log_for_core(state, state.page.tuple);
}

/* nextval_internal(), which compares with the redo pointer as it should in one step. */
inline void nextval(State& state)
{
    constexpr Small kLogged = 32; /* SEQ_LOG_VALS */
    const Tuple before = state.page.tuple;
    const Small value = before.position + (before.is_called ? 1 : 0);
    const bool logs = before.log_count < 1 || !before.is_called || state.page.lsn <= state.wal.redo;
    if (logs)
        log_for_core(state, {value + kLogged, 0, true, before.kept});
    state.page.tuple = {value, logs ? kLogged : before.log_count - 1, true, before.kept};
}

/* raise_position(), write_position() with an XID, make_durable() */
inline void advance(State& state, UnixMs now, const Guards& guards)
{
    const Tuple& tuple = state.page.tuple;
    const Position floor{kAdvanceTo};
    const Position target =
        guards.raises_to_kept ? raised(floor, Position{tuple.kept}, now, kLimits.max_lead) : floor;
    Session session = {};
    session.first = small(raw(target));
    session.count = 1;
    session.core_use =
        static_cast<std::uint8_t>(core_use_of(tuple.log_count, tuple.is_called != 0, now));
    if (is_record_due(state, session, guards))
        log_position(state, session, guards);
    else
        write_without_record(state, session, guards);
    flush_up_to(state.wal, state.page.lsn);
}

inline void call(State& state, Call call, UnixMs now, const Guards& guards)
{
    --state.calls_left;
    state.is_dirty = true;
    switch (call) {
    case Call::nextval:
        nextval(state);
        break;
    case Call::setval_ahead:
        setval(state, kSetTo, false);
        break;
    case Call::setval_back:
        setval(state, 1, true);
        break;
    case Call::setval_back_uncalled:
        setval(state, 1, false);
        break;
    case Call::advance:
        advance(state, now, guards);
        break;
    }
}

} // namespace model
