/*
 * What else may be done to a sequence: its page is copied, or core's own functions are called. Each
 * is one step, in a transaction that commits durably; the lock on the relation keeps open
 * transactions that have drawn away from a copy.
 */
#pragma once

#include "server_steps.h"

namespace model
{

enum class Copy {
    set_unlogged,       /* ALTER SEQUENCE ... SET UNLOGGED */
    set_logged,         /* ALTER SEQUENCE ... SET LOGGED */
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

inline bool can_call_core(const State& state)
{
    return state.core_calls_left > 0 && state.needs_wal && state.locked_by == 0;
}

inline void log_for_core(State& state, const Tuple& in_record)
{
    state.page.lsn = insert_record(state.wal, in_record);
    flush_up_to(state.wal, state.wal.inserted);
}

/* setval(sequence, position, false), to later than all that was drawn: back is not promised. */
inline bool can_setval(const State& state, Small position)
{
    return can_call_core(state) && position > state.page.tuple.position;
}

inline void setval_uncalled(State& state, Small position)
{
    --state.core_calls_left;
    state.page.tuple = {position, 0, false};
    state.is_dirty = true;
    log_for_core(state, state.page.tuple);
}

/* nextval_internal(), which compares with the redo pointer as it should in one step. */
inline void nextval(State& state)
{
    constexpr Small kLogged = 32; /* SEQ_LOG_VALS */
    --state.core_calls_left;
    const Tuple before = state.page.tuple;
    const Small value = before.position + (before.is_called ? 1 : 0);
    const bool logs = before.log_count < 1 || !before.is_called || state.page.lsn <= state.wal.redo;
    state.is_dirty = true;
    if (logs)
        log_for_core(state, {value + kLogged, 0, true});
    state.page.tuple = {value, logs ? kLogged : before.log_count - 1, true};
}

} // namespace model
