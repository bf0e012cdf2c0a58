/*
 * Worlds: which steps are possible, and how many of each. Each world is searched by itself, because
 * one world with all steps would be too large.
 */
#pragma once

#include "commands.h"

#include <vector>

namespace model
{

struct Bounds {
    std::uint8_t draws;
    std::uint8_t checkpoints;
    std::uint8_t crashes;
    std::uint8_t copies;
    std::uint8_t calls;
};

/* 1025 IDs at once end in the next millisecond, ahead of the clock. */
constexpr Small kOne = 1;
constexpr Small kBlock = 1025;

/* A lease of 1,000 ms that is given at kStart is over at kMuchLater. */
constexpr Small kStart = 5000;
constexpr Small kLater = 5001;
constexpr Small kLatest = 5002;
constexpr Small kMuchLater = 6002;

struct World {
    const char* name;
    const char* text;
    Bounds bounds;
    Bounds deep;                                  /* with --deep */
    std::vector<Small> clocks = {kStart, kLater}; /* possible readings, at any time */
    std::vector<Small> wanted = {kOne};           /* how many IDs a draw may ask for */
    std::vector<Copy> copies = {};                /* the copies that may be made of the page */
    std::vector<Call> calls = {};
    bool begins_with_wal = true;
    bool clock_runs_on = false;  /* no reading is earlier than the one before it */
    bool compares_dirty = false; /* a draw compares a page that is dirty, too: PostgreSQL 19 */
};

inline std::vector<World> all_worlds()
{
    return {
        {"sessions",
         "three sessions draw one ID at a time; a checkpoint, a crash",
         {4, 1, 1, 0, 0},
         {4, 2, 2, 0, 0}},
        {"blocks",
         "blocks that run ahead of the clock, clocks far apart, two crashes",
         {3, 1, 2, 0, 0},
         {3, 2, 2, 0, 0},
         {kStart, kLater, kMuchLater},
         {kOne, kBlock}},
        {"running",
         "the clock never goes back, and is later after a crash",
         {3, 1, 1, 0, 0},
         {4, 1, 2, 0, 0},
         {kStart, kLater, kLatest},
         {kOne, kBlock},
         {},
         {},
         true,
         true},
        {"template",
         "CREATE DATABASE ... TEMPLATE, with both strategies, seen from the copy",
         {3, 1, 1, 1, 0},
         {4, 1, 1, 1, 0},
         {kStart, kLater},
         {kOne},
         {Copy::pages, Copy::files}},
        {"persistence",
         "ALTER SEQUENCE ... SET UNLOGGED and SET LOGGED",
         {3, 1, 1, 2, 0},
         {4, 1, 1, 2, 0},
         {kStart, kLater},
         {kOne},
         {Copy::set_unlogged, Copy::set_logged}},
        {"unlogged",
         "a sequence that was made UNLOGGED, and SET LOGGED",
         {3, 1, 1, 1, 0},
         {4, 1, 1, 1, 0},
         {kStart, kLater},
         {kOne},
         {Copy::set_logged},
         {},
         false},
        {"minimal",
         "wal_level=minimal: made and used in one transaction, and used after it",
         {3, 1, 1, 1, 0},
         {4, 1, 1, 1, 0},
         {kStart, kLater},
         {kOne},
         {Copy::end_of_skipped_wal, Copy::synced_instead},
         {},
         false},
        {"core",
         "core's nextval() and setval(), and snowflake_advance(), in between",
         {3, 1, 1, 0, 1},
         {3, 1, 1, 0, 2},
         {kStart, kLater},
         {kOne},
         {},
         {Call::setval_ahead, Call::nextval, Call::advance}},
        {"marked",
         "PostgreSQL 19: pg_buffercache_mark_dirty() marks a page that nothing has changed",
         {3, 1, 1, 0, 1},
         {4, 2, 1, 0, 2},
         {kStart, kLater},
         {kOne},
         {},
         {Call::mark_dirty},
         true,
         false,
         true},
        {"set back",
         "the position is set back, while no ID is ahead of the clock",
         {3, 0, 0, 1, 2},
         {3, 1, 0, 1, 2},
         {kStart, kLater, kLatest},
         {kOne},
         {Copy::restart},
         {Call::setval_back, Call::setval_back_uncalled, Call::advance_into_past},
         true,
         true},
    };
}

inline bool has_creator(const World& world)
{
    return std::any_of(world.copies.begin(), world.copies.end(), is_creators_commit);
}

/* A sequence that was drawn from long ago: its record is flushed, its page is written. */
inline State first_state(const World& world, const Bounds& bounds)
{
    State state = {};
    state.page.tuple = {1, snowflake::kNoLease, true};
    state.needs_wal = world.begins_with_wal;
    state.compares_dirty = world.compares_dirty;
    if (world.begins_with_wal) {
        state.page.lsn = insert_record(state.wal, state.page.tuple);
        state.wal.flushed = state.wal.inserted;
    }
    state.disk = state.page;
    state.draws_left = bounds.draws;
    state.checkpoints_left = bounds.checkpoints;
    state.crashes_left = bounds.crashes;
    state.copies_left = bounds.copies;
    state.calls_left = bounds.calls;
    return state;
}

} // namespace model
