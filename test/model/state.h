/*
 * What the model remembers: one sequence's page in memory and on disk, the WAL, a checkpoint under
 * way, three sessions, and what they have seen.
 *
 * Everything is small and without padding, so that a state is hashed and compared as bytes. LSNs
 * are counted in records: record n ends at LSN 8 * n, and nothing else is in the WAL (see steps.h).
 */
#pragma once

#include "kept_position.h"

#include <array>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <type_traits>

namespace model
{

using snowflake::Position;
using snowflake::UnixMs;

/* The clock is read in the first seconds of Unix time: so positions and counts take 32 bits. */
using Small = std::int32_t;

inline Small small(std::int64_t value)
{
    if (value < INT32_MIN || value > INT32_MAX) {
        std::cerr << "the model is too small for the value " << value << '\n';
        std::abort();
    }
    return static_cast<Small>(value);
}

using RecordNumber = std::uint8_t; /* 0: none */

constexpr std::uint64_t lsn_of(RecordNumber record)
{
    return std::uint64_t{record} << snowflake::kLsnAlignmentBits;
}

/* The tuple of a sequence, on its page or in a record. All zero: not of this sequence's file. */
struct Tuple {
    Small position;
    Small log_count;
    Small is_called;
    Small kept; /* behind the last column */

    bool is_present() const { return position != 0; }
};

struct Page {
    Tuple tuple;
    RecordNumber lsn;
    std::uint8_t unused[3];
};

constexpr std::size_t kSessions = 3;
constexpr std::size_t kRecords = 10;
constexpr std::size_t kSeenBlocks = 6;

struct Wal {
    std::array<Tuple, kRecords + 1> records; /* by number; 0 stays empty */
    RecordNumber inserted;
    RecordNumber flushed;
    RecordNumber redo;         /* what GetRedoRecPtr() tells */
    RecordNumber control_redo; /* of the last checkpoint that was finished: where replay starts */
};

enum class CheckpointPhase : std::uint8_t { none, determined, published, collected };

enum class Stage : std::uint8_t {
    idle,    /* not drawing: in a transaction, or between two */
    again,   /* the draw starts anew, with an XID now or after a wait */
    reading, /* the page was locked and read, and the rule has decided */
    drawn,   /* the page is written and unlocked; the ID is not seen yet */
};

struct Session {
    Small wanted;
    Small now;   /* what the clock said */
    Small first; /* the rule's decision */
    Small count;
    Small last_seen; /* in the open transaction; 0: it has seen nothing */
    Small paced_at;  /* the position before a wait; 0: none */
    Small share_ms;
    Small share_taken;
    Stage stage;
    std::uint8_t is_dirtied; /* steps that were taken while reading */
    std::uint8_t is_compared;
    std::uint8_t logs; /* the comparison says: a record is due */
    std::uint8_t has_xid;
    std::uint8_t has_record; /* XactLastRecEnd is set */
    std::uint8_t core_use;
    RecordNumber lease;
};

/* IDs that somebody has seen, and that did not commit durably. */
struct SeenBlock {
    Small first;
    Small last;
    Small now; /* what the clock said when they were drawn */
};

struct Seen {
    Small durable; /* the greatest ID of a transaction that committed durably; 0: none */
    Small drawn;   /* the greatest since the server started, seen or not; 0: none */
    std::array<SeenBlock, kSeenBlocks> blocks; /* those above `durable`, in order */
};

struct State {
    Page page;
    Page disk;
    Wal wal;
    std::array<Session, kSessions> sessions;
    Seen seen;
    Small earliest; /* that a clock which runs on may say */
    std::uint8_t is_dirty;
    std::uint8_t is_needed; /* BM_CHECKPOINT_NEEDED */
    std::uint8_t locked_by; /* session + 1 */
    std::uint8_t needs_wal;
    CheckpointPhase phase;
    RecordNumber next_redo;
    /* How much may still happen. */
    std::uint8_t draws_left;
    std::uint8_t checkpoints_left;
    std::uint8_t crashes_left;
    std::uint8_t copies_left;
    std::uint8_t calls_left;
    std::uint8_t unused;
};

static_assert(std::has_unique_object_representations_v<State>, "states are hashed as bytes");

inline bool is_in_transaction(const Session& session)
{
    return session.last_seen != 0 || session.stage != Stage::idle;
}

} // namespace model
