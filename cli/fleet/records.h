/* The records of moves and of a split in a database: the schemas snowflake_move_N, where N is the
 * lowest number of the set that moves, and snowflake_split. Each has the tables state and shards.
 * They are read only here; move/state.h and split/ write them. in_transit.h interprets them for a
 * shard. */

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fleet/move_state.h"
#include "postgres/connection.h"

/* The name of the record of a move, of its publication and subscription, and of the lock of a
 * shard. shard: the lowest number of the set. */
std::string name_of_move(int shard);
inline const std::string kSplitSchema = "snowflake_split";

/* The text of a step in the table, which people read. */
std::string text_of(Step step);

/* All moves of a server whose state can be trusted: made by this role, or by a superuser. */
std::vector<MoveState> read_moves(Connection& connection);
/* The one of this name. */
std::optional<MoveState> read_move(Connection& connection, const std::string& name);

/* The fingerprint of the definition that a move has copied, as its record has it; empty if there is
 * none. Within a transaction of the caller the schema of the record stays, and its functions are
 * those of a trusted role. */
std::string read_noted_definition(Connection& connection, const std::string& name);

/* Warns of a record that is not read, because another role that is no superuser has made it, or
 * planted it. Verbs that must know of each move call it. */
void warn_of_unread_records(Connection& connection);

/* The steps have the order of a split: a step is compared with < to see if the promotion can have
 * been requested. */
enum class SplitStep {
    prepared,  /* the triggers wait, or are being made; every shard is open on the old server */
    closed,    /* the shards that leave are closed, and writers end */
    sealed,    /* nothing of them can be written or drawn any more */
    promoting, /* the promotion may have been requested: the shards may be open on the new server */
    split,     /* the server has its own shards, and closed copies of the others */
};

std::string text_of(SplitStep step);

/* The schema snowflake_split of the server that is split, and by the WAL that of its standby. */
struct SplitState {
    std::string id; /* the same on both servers, and no other split has it */
    Address old_server;
    Address new_server;
    SplitStep step;
    bool is_new;               /* written when the promoted standby was opened */
    bool is_home;              /* it has the slot of close(), or is a standby */
    std::string seal;          /* of the last closing; empty until the shards are sealed */
    std::string standby_start; /* when the standby had been started that was to be promoted */

    /* Neither the move of all shards is done, nor are they where they were. */
    bool is_under_way() const { return step != SplitStep::split; }
};

/* Nothing if there is no split, or none of ours or of a superuser. */
std::optional<SplitState> read_split(Connection& connection);

struct SplitShard : Shard {
    bool leaves; /* the standby takes it */
};

/* All shards of the server, by number, when the split began. To be called only if read_split() has
 * found a split, because that looks who owns the schema. */
std::vector<SplitShard> read_split_shards(Connection& connection);
