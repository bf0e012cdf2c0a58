/*
 * Commands on the sequence: its page is copied or marked dirty, or nextval(), setval() or
 * snowflake_advance() is called. Each is one step, in a transaction that commits durably. A copy
 * needs that no transaction that has drawn is open, because those hold a lock on the sequence.
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

/* The first session is in the transaction that creates the sequence; no other can see it. */
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

/* The copy is another file: no record of the old file is replayed into it. */
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
        state.page.tuple = {1, 0, false};
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
    advance,              /* snowflake_advance(), past the millisecond after kStart */
    advance_into_past,    /* snowflake_advance(), past the millisecond before kStart */
    mark_dirty,           /* pg_buffercache_mark_dirty(), on a page that is clean */
};

constexpr Small kSetTo = 5003 * 1024 + 7;
constexpr Small kAdvanceTo = 5001 * 1024 + 1023;
constexpr Small kAdvanceIntoPastTo = 4999 * 1024 + 1023;

/* An ID of kLimits.epoch, which is 0, of the millisecond that ends with this position. */
constexpr snowflake::Id id_before(Small position)
{
    return make_id(snowflake::Age{position >> snowflake::kCounterBits}, snowflake::Shard{5},
                   snowflake::Counter{0});
}

inline bool can_call(const State& state, Call call)
{
    if (state.calls_left == 0 || !state.needs_wal || state.locked_by != 0)
        return false;
    if (call == Call::mark_dirty)
        return !state.is_dirty;
    return call != Call::setval_ahead || state.page.tuple.position < kSetTo;
}

inline void log_for_core(State& state, const Tuple& in_record)
{
    state.is_dirty = true;
    state.page.lsn = insert_record(state.wal, in_record);
    flush_up_to(state.wal, state.page.lsn);
}

/* do_setval() */
inline void setval(State& state, Small position, bool is_called)
{
    state.page.tuple = {position, 0, is_called};
    log_for_core(state, state.page.tuple);
}

/* nextval_internal(), in one step, so without its race with a checkpoint. */
inline void nextval(State& state)
{
    constexpr Small kLogged = 32; /* SEQ_LOG_VALS */
    const Tuple before = state.page.tuple;
    const Small value = before.position + (before.is_called ? 1 : 0);
    const bool logs = before.log_count < 1 || !before.is_called || state.page.lsn <= state.wal.redo;
    state.is_dirty = true;
    if (logs)
        log_for_core(state, {value + kLogged, 0, true});
    state.page.tuple = {value, logs ? kLogged : before.log_count - 1, true};
}

/* decide_advance(), write_advanced(), make_durable(): its caller relies on it as on a seen ID. */
inline void advance(State& state, Small floor, const Guards& guards)
{
    const snowflake::Advance decided =
        decide_advance(stored_in(state.page, guards), id_before(floor), kLimits);
    if (decided.verdict == snowflake::AdvanceVerdict::raise) {
        set_tuple(state.page, decided.position,
                  guards.advance_is_set ? snowflake::kLogCountOfSet : snowflake::kNoLease);
        log_for_core(state, state.page.tuple);
    }
    flush_up_to(state.wal, state.page.lsn);
    note_drawn(state.seen, floor);
    note_committed(state.seen, floor);
}

inline void call(State& state, Call call, const Guards& guards)
{
    --state.calls_left;
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
        advance(state, kAdvanceTo, guards);
        break;
    case Call::advance_into_past:
        advance(state, kAdvanceIntoPastTo, guards);
        break;
    case Call::mark_dirty:
        state.is_dirty = true;
        break;
    }
}

} // namespace model
