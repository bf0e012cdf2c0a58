/* Shards of a move or a split, from its beginning until the closed rows are dropped: the state of
 * each by the records of a server, whether a verb may work on it, and the command that continues.
 */

#pragma once

#include <string>
#include <vector>

#include "fleet/phase.h"
#include "fleet/records.h"
#include "postgres/servers.h"

struct InTransit {
    enum class Kind { move, split };
    Shard shard;        /* without the quoted name */
    std::string record; /* the schema that has it */
    Shards set;         /* the shards that move together; empty for a split */
    Kind kind;
    Phase phase;  /* of a shard of a split: prepared or moved */
    bool is_open; /* here: else it has left, or has not come yet */
    bool is_source;
    Address other;
    std::string from; /* the servers, as the command takes them: connection strings */
    std::string to;
    std::string id;          /* of the move or split, the same on both servers */
    std::string step;        /* of it, for messages */
    std::string compared_at; /* of a move that is held; else empty */
    bool is_lost = false; /* the other server followed, and its slot here cannot be read any more */
    bool is_closed_everywhere = false; /* see closed_everywhere.h */

    Motion motion() const { return row_of(phase).motion; }
    bool is_followed() const
    {
        return is_source && (phase == Phase::held || motion() == Motion::reverse);
    }
};

/* The state of a set by one of the records of this phase. The first shard stands for the set. The
 * strings are connection strings without secrets. */
InTransit in_transit(const MoveState& move, Phase phase, const std::string& source,
                     const std::string& target);
/* The state by a record of the server here alone. */
InTransit in_transit(const MoveState& move, const std::string& here, const std::string& other);

/* The shards of moves, and then those of the split. */
std::vector<InTransit> read_in_transit(Connection& connection);

/* snowflake-shard move insta5 --from ... --to ... OPTIONS, for a shell; of several shards move
 * --shards 5-7 ... */
std::string move_command(const Shards& set, const std::string& from, const std::string& to,
                         const std::string& options);
/* The same, and snowflake-shard split --from ... --standby ... By read_in_transit() the servers are
 * URIs without user and password, which the record does not have. */
std::string command_of(const InTransit& shard, const std::string& option);
std::string command_of(const SplitState& split, const std::string& option);

/* The state for list: the shard is open here, is on its way, or has left a closed copy. */
std::string state_of(const InTransit& shard);

/* The next command, if one alone is to be named; empty if there is none. */
std::string next_command(const InTransit& shard);
std::string next_command(const SplitState& split);
/* All next commands, each with its effect, for a hint. */
std::string next_commands(const InTransit& shard);
std::string next_commands(const SplitState& split);

/* The error of a verb that must not work on the shard: "shard 5, schema insta5, is moving", with
 * the hint. A set that moves is named as a whole. */
std::string describe(const InTransit& shard);

/* An error if one of these shards is moving or has reverse replication: a definition that changes
 * meanwhile would be that of one server alone. */
void require_unmoved(ServerSet& servers, const ShardSet& shards);
