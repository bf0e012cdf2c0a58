/* Steps of the server: WAL is flushed, the page is written, a checkpoint runs, the server crashes.
 */
#pragma once

#include "draw_steps.h"

namespace model
{

/* Any session's commit, or the WAL writer: record by record, so up to any point. */
inline bool can_flush(const State& state)
{
    return state.wal.flushed < state.wal.inserted;
}

inline void flush(State& state)
{
    ++state.wal.flushed;
}

/* FlushBuffer(), by the background writer, a session that needs the buffer, or the checkpoint. */
inline bool can_write_page(const State& state)
{
    return state.is_dirty && state.locked_by == 0;
}

inline void write_page(State& state)
{
    flush_up_to(state.wal, state.page.lsn);
    state.disk = state.page;
    state.is_dirty = state.is_needed = false;
}

/* The redo pointer is determined under the insertion locks, and published a little later. */
inline bool can_determine_redo(const State& state)
{
    return state.phase == CheckpointPhase::none && state.checkpoints_left > 0;
}

inline void determine_redo(State& state)
{
    --state.checkpoints_left;
    state.phase = CheckpointPhase::determined;
    state.next_redo = state.wal.inserted;
}

inline void publish_redo(State& state)
{
    state.phase = CheckpointPhase::published;
    state.wal.redo = state.next_redo;
}

/* BufferSync(): a page that is dirty now is written before the checkpoint ends. */
inline void collect(State& state)
{
    state.phase = CheckpointPhase::collected;
    state.is_needed = state.is_dirty;
}

/* Records at or before the redo pointer are not replayed any more. */
inline void forget_old_records(Wal& wal)
{
    for (std::size_t i = 1; i <= wal.control_redo; ++i)
        wal.records[i] = {};
}

inline bool can_finish_checkpoint(const State& state)
{
    return state.phase == CheckpointPhase::collected && !state.is_needed;
}

inline void finish_checkpoint(State& state)
{
    flush_up_to(state.wal, state.wal.inserted); /* the checkpoint's own record is the last one */
    state.wal.control_redo = state.next_redo;
    forget_old_records(state.wal);
    state.phase = CheckpointPhase::none;
    state.next_redo = 0;
}

/* Before an ID was seen a crash loses nothing. */
inline bool can_crash(const State& state)
{
    return state.crashes_left > 0 && state.needs_wal && state.draws_left > 0 &&
           (state.seen.durable != 0 || state.seen.blocks.back().first != 0);
}

/*
 * Recovery: the page on disk, then the flushed records from the last checkpoint on. seq_redo()
 * makes the page anew from each record. A restart after a crash ends with a checkpoint. The
 * promotion of a standby that has received the flushed WAL does not.
 */
inline void crash(State& state, bool ends_with_checkpoint)
{
    --state.crashes_left;
    Wal& wal = state.wal;
    state.page = state.disk;
    state.is_dirty = false;
    for (auto i = RecordNumber(wal.control_redo + 1); i <= wal.flushed; ++i)
        if (wal.records[i].is_present()) {
            state.page = {wal.records[i], i, {}};
            state.is_dirty = true;
        }
    if (!state.page.tuple.is_present()) {
        std::cerr << "the model has lost the sequence\n";
        std::abort();
    }
    for (std::size_t i = wal.flushed + std::size_t{1}; i <= wal.inserted; ++i)
        wal.records[i] = {};
    wal.inserted = wal.flushed;

    state.sessions = {};
    state.locked_by = 0;
    state.seen.drawn = 0;
    state.phase = CheckpointPhase::none;
    state.next_redo = 0;
    state.is_needed = false;
    wal.redo = wal.control_redo;
    if (ends_with_checkpoint) {
        state.disk = state.page;
        state.is_dirty = false;
        wal.redo = wal.control_redo = wal.inserted;
        forget_old_records(wal);
    }
}

} // namespace model
