/* The shards that a server has or that a move there knows, read once. */

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fleet/records.h"

struct Known {
    std::string server; /* host:port/database */
    std::vector<MoveState> moves;
    Shards open; /* none without the extension */

    /* Nothing if no move has the schema. */
    const MoveState* find_move(const std::string& schema) const;
    /* The record of a move comes first: the registry can lack a fenced shard, because the fence has
     * replaced the functions that make its IDs. Nothing if the schema is no shard there. A Failure
     * if it has several numbers. */
    std::optional<Shard> find(const std::string& schema) const;
};

Known read_known(Connection& connection);
