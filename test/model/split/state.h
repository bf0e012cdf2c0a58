/*
 * A state of the model of splits: the old server, its standby, the command, the statements that its
 * sessions still run, two clients, and the alias of a PgBouncer.
 *
 * One shard leaves, and one stays; each is a table with a sequence.
 */
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace model::splits
{

using Byte = std::uint8_t;

constexpr std::size_t kOld = 0;
constexpr std::size_t kStandby = 1;
constexpr std::size_t kServers = 2;
constexpr std::size_t kLeaves = 0;
constexpr std::size_t kStays = 1;
constexpr std::size_t kShards = 2;
constexpr std::size_t kClients = 2;
constexpr Byte kFirst = 1;
constexpr Byte kEnd = 255;

/* snowflake_split.state */
enum class RecordStep : Byte { none, prepared, closed, sealed, promoting, split };

/* The bodies of leaving() and staying(). */
enum class Body : Byte { open, open_with_slot, closed };

struct Shard {
    Byte is_there;
    Byte has_triggers;
    Body body;
    Byte position;
    Byte is_at_end;
    Byte kept;
    Byte rows; /* a bit each; WAL that is replayed doubles none */
};

/* The part of a server that its WAL describes. A standby has it as of some flushed commit. */
struct Image {
    RecordStep step;
    Byte seal;
    Byte standby_start;
    Byte is_new;
    std::array<Shard, kShards> shards;
};

struct Server {
    Image now;
    Image disk;                     /* after a crash; of a standby, the same */
    std::array<Byte, kShards> seen; /* IDs that were drawn and are not flushed */
    Byte has_slot;                  /* that of close(); it is not in the WAL */
    Byte is_read_only;              /* default_transaction_read_only; it is not in the WAL */
    std::array<Byte, kShards> is_sequence_locked;
};

enum class Verb : Byte { split, resume, abort, complete };

enum class Step : Byte;

struct Statement {
    Step step;
    Byte value;
};

enum class GivingUp : Byte { no, to_try_again, to_end };

struct Command {
    Byte is_running;
    Verb verb;
    Step at;
    Byte lost_sessions;
    Byte has_standby; /* it can be reached */
    GivingUp giving_up;
    Byte tries;
    Byte is_final;
    Byte writers;
    Byte position;
    Byte start; /* of the standby */
};

struct Client {
    Byte is_writing;
    Byte server;
    Byte shard;
    Byte row;
};

struct State {
    std::array<Server, kServers> servers;
    Byte is_in_recovery;
    Byte is_requested; /* a file, and a signal: the promotion comes, or the standby stops */
    Byte start;        /* how often the standby was started */
    std::array<Client, kClients> clients;
    Command command;
    std::array<Statement, kServers> running; /* that the command, or a killed one, has given up */
    std::array<Byte, kServers> is_left;      /* the session is that of a killed one */
    Byte leads_to;
    Byte is_paused;
    std::array<Byte, kShards> acknowledged;
    std::array<Byte, kShards> ids; /* that were drawn and are flushed */
    Byte last_seal;
    Byte rows;
    /* How much may still happen. */
    Byte writes_left;
    Byte draws_left;
    Byte commands_left;
    Byte kills_left;
    Byte crashes_left;
    Byte stalls_left;
    Byte promotions_left; /* by somebody else */
};

static_assert(std::has_unique_object_representations_v<State>, "states are hashed as bytes");

/* For a session that sets default_transaction_read_only itself. */
inline bool is_open(const State& state, std::size_t server, std::size_t number)
{
    const Shard& shard = state.servers[server].now.shards[number];
    const bool is_primary = server == kOld || !state.is_in_recovery;
    const bool is_closed = shard.body == Body::closed ||
                           (shard.body == Body::open_with_slot && !state.servers[server].has_slot);
    return is_primary && shard.is_there && !(shard.has_triggers && is_closed);
}

/* Somebody else has promoted the standby, and the command does not know it. */
inline bool is_stray(const State& state)
{
    return !state.is_in_recovery && !state.servers[kStandby].now.is_new;
}

} // namespace model::splits
