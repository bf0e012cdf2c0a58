/*
 * A state of the model: one sequence's page in memory and on disk, the WAL, a running checkpoint,
 * three sessions, and the IDs that they have seen.
 *
 * A state is small and has no padding, because it is hashed and compared as bytes. LSNs count
 * records: record n ends at LSN 8 * n, and the WAL has no other records (see model.cpp).
 */
#pragma once

#include "rule/decide.h"
#include "rule/lease.h"

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
    RecordNumber redo;         /* the result of GetRedoRecPtr() */
    RecordNumber control_redo; /* of the last finished checkpoint: where replay starts */
};

enum class CheckpointPhase : std::uint8_t { none, determined, published, collected };

enum class Stage : std::uint8_t {
    idle,    /* not drawing: in a transaction, or between two */
    again,   /* the draw starts anew, with an XID now or after a wait */
    reading, /* the page was locked and read, and the rule has decided */
    drawn,   /* the page is written and unlocked; the ID is not seen yet */
};

enum class Dirtied : std::uint8_t { no, was_clean, was_dirty };

struct Session {
    Small wanted;
    Small now;   /* the reading of the clock */
    Small first; /* of the decision */
    Small count;
    Small last_seen;    /* in the open transaction; 0: nothing */
    Small waited_value; /* on the page at which it was told to pace; 0: it was not */
    Small waited_now;   /* the reading of the clock then */
    Stage stage;
    Dirtied is_dirtied; /* steps that were taken while reading */
    std::uint8_t is_compared;
    std::uint8_t logs; /* the comparison says: a record is due */
    std::uint8_t has_xid;
    std::uint8_t has_record; /* XactLastRecEnd is set */
    RecordNumber record;     /* protects the draw */
    RecordNumber waited_lsn;
};

/* IDs that were seen and did not commit durably. */
struct SeenBlock {
    Small first;
    Small last;
    Small now; /* the reading of the clock when they were drawn */
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
    Small earliest; /* reading, in a world where the clock runs on */
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
    std::uint8_t compares_dirty; /* a draw compares a page that is dirty, too: PostgreSQL 19 */
};

static_assert(std::has_unique_object_representations_v<State>, "states are hashed as bytes");

inline bool is_in_transaction(const Session& session)
{
    return session.last_seen != 0 || session.stage != Stage::idle;
}

} // namespace model
