/*
 * A state of the model of moves: two servers, the command, the statements that its sessions still
 * run, two clients, and the alias of a PgBouncer.
 *
 * A state has no padding, because it is hashed and compared as bytes. Clients write few rows; a row
 * has a number, and the set that moves is one table with one sequence.
 */
#pragma once

#include "program/next.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace model::moves
{

using Byte = std::uint8_t;

constexpr std::size_t kServers = 2;
constexpr std::size_t kClients = 2;
constexpr std::size_t kRows = 4;
constexpr std::size_t kEntries = 10;
constexpr Byte kFirst = 1; /* position of the sequence in the beginning */
constexpr Byte kEnd = 255; /* the last one that a sequence can have */

/* snowflake_move_N.state. The steps are those of cli/fleet/move_state.h, in their order. */
enum class RecordStep : Byte { none, prepared, fenced, moved, copying, ready, open };

struct Record {
    RecordStep step;
    Byte marker; /* number; 0: none */
    Byte is_reversible;
    Byte is_reverse;
    Byte is_equal;
    Byte is_held;     /* the move ends before the cutover until --cutover is given */
    Byte is_compared; /* the rows of all tables */
};

enum class Subscription : Byte { none, disabled, enabled };

/* A commit in the WAL that logical decoding sends: a row, or a marker and its position. */
struct Entry {
    Byte row; /* number + 1; 0: a marker */
    Byte marker;
    Byte position;
};

/* The part of a server that its WAL describes. */
struct Image {
    Record record;
    Byte has_shard;
    Byte has_triggers; /* of the fence, ENABLE ALWAYS */
    Byte is_closed;    /* body of their function */
    Byte position;     /* of the sequence */
    Byte is_at_end;    /* nothing can be drawn from it */
    Byte kept;         /* its position in the table positions; 0: none */
    Byte marker;       /* the last that came from the other server; 0: none */
    Byte marker_position;
    Byte has_publication;
    Subscription subscription;
    Byte applied; /* as many entries of the other server's WAL (pg_replication_origin) */
    Byte noted;   /* entries of this server's WAL at its opening (table noted) */
    Byte length;  /* of the WAL */
    std::array<Byte, kRows> rows; /* how often each is there */
    std::array<Entry, kEntries> wal;
};

/* It is on disk when it is made, and not in the WAL. */
struct Slot {
    Byte is_there;
    Byte is_lost; /* has lost WAL */
    Byte begin;   /* entry */
};

struct Server {
    Image now;
    Image disk; /* after a crash: what is flushed */
    Slot slot;
    Byte seen;               /* IDs that were drawn and are not flushed, a bit each */
    Byte is_sequence_locked; /* by the command */
};

enum class Verb : Byte {
    move,
    move_reversible,
    hold, /* with --reversible */
    cutover,
    resume,
    abort,
    undo,
    undo_reversible,
    complete,
};

using program::GivingUp;
using program::Side;
using program::Step;

/* A statement with the values that it sends. */
struct Statement {
    Step step;
    Byte from; /* server */
    Byte value;
};

struct Command {
    Byte is_running;
    Verb verb;
    Byte from;          /* server; of an undo the one that the shard leaves now */
    Step at;            /* the next step */
    Byte lost_sessions; /* a bit for each server */
    GivingUp giving_up; /* the cutover */
    Byte tries;
    Byte is_final;    /* the COMMIT of the opening was sent */
    Byte has_opening; /* its transaction is open */
    Byte has_opened;  /* by this command, which therefore compares rows */
    Byte writers;     /* that it waits for, a bit for each client */
    Byte position;    /* that it has read */
    Byte was_at_end;
    Byte marker;
    Byte snapshot; /* rows, a bit each */
    Byte has_failed;
};

struct Client {
    Byte is_writing; /* its transaction is open, and holds a lock of the table */
    Byte server;
    Byte row;
};

struct State {
    std::array<Server, kServers> servers;
    std::array<Client, kClients> clients; /* the first through the alias, the second directly */
    Command command;
    std::array<Statement, kServers> running; /* that the command, or a killed one, has given up */
    std::array<Byte, kServers> is_left;      /* the session is that of a killed one */
    Statement keeping;                       /* the same of the session that keeps positions */
    Byte is_keeper_left;
    Byte leads_to; /* server of the alias */
    Byte is_paused;
    Byte acknowledged; /* rows, a bit each */
    Byte ids;          /* that were drawn and are flushed, a bit each */
    Byte last_marker;
    Byte rows;
    /* How much may still happen. */
    Byte writes_left;
    Byte draws_left;
    Byte commands_left;
    Byte kills_left;
    Byte crashes_left;
    Byte stalls_left;
    Byte losses_left; /* of a slot, of triggers */
};

static_assert(std::has_unique_object_representations_v<State>, "states are hashed as bytes");

inline bool is_open(const Image& image)
{
    return image.has_shard && !(image.has_triggers && image.is_closed);
}

} // namespace model::moves
