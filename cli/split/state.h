/* The record of a split: the schema snowflake_split of the server that is split, and by
 * the WAL that of its standby. It is written here and by the functions of fence.cpp alone. */

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "postgres/connection.h"

inline const std::string kSplitSchema = "snowflake_split";

/* In the order of a split: a step is compared with < to see if the promotion can have been
 * requested. */
enum class SplitStep {
    prepared,  /* the triggers wait, or are being made; every shard is open on the old server */
    closed,    /* the shards that leave are closed, and writers end */
    sealed,    /* nothing of them can be written or drawn any more */
    promoting, /* the promotion may have been requested: the shards may be open on the new server */
    split,     /* the server has its own shards, and closed copies of the others */
};

std::string text_of(SplitStep step);

struct SplitState {
    std::string id;         /* the same on both servers, and no other split has it */
    std::string old_server; /* host:port/database */
    std::string new_server;
    SplitStep step;
    bool is_new;               /* written when the promoted standby was opened */
    bool is_home;              /* it has the slot of close(), or is a standby */
    std::string seal;          /* of the last closing; empty until the shards are sealed */
    std::string standby_start; /* when the standby had been started that was to be promoted */

    /* Neither the move of all shards is done, nor are they where they were. */
    bool is_under_way() const { return step != SplitStep::split; }
};

struct SplitShard {
    int number;
    std::string schema;
    std::string quoted; /* the schema as SQL writes it */
    bool leaves;        /* the standby takes it */
};

/* Nothing if there is no split, or none of ours or of a superuser. */
std::optional<SplitState> read_split(Connection& connection);
/* In the middle of a split. A Failure if the record is gone, or not trusted any more. */
SplitState require_split(Connection& connection);

/* All shards of the server, by number, when the split began. To be called only if read_split() has
 * found a split, because that looks who owns the schema. */
std::vector<SplitShard> read_split_shards(Connection& connection);

/* It is closed there. It may be open on the other server. */
bool is_closed(const SplitState& state, const SplitShard& shard);

/* A shard of this database that is closed, or that is leaving. */
struct ShardInSplit {
    SplitShard shard;
    bool is_closed;
    bool is_moving;
};

/* Nothing if there is no split. */
std::vector<ShardInSplit> read_shards_in_split(Connection& connection);

/* The command of the split: snowflake-shard split --from ... --standby ... The addresses are URIs
 * without user and password, which the record does not have. */
std::string command_of(const SplitState& state);
