/* Partitions and children of shards' tables that are in another schema. pg_dump of the shard leaves
 * them out: no clone has them, and they neither move nor are closed with the shard. */

#pragma once

#include <string>
#include <vector>

#include "base/shards.h"
#include "postgres/connection.h"

/* A shard that has such tables. */
struct OutsideChildren {
    Shard shard;
    std::string problem;
    std::string hint; /* the statements that mend it */
};

/* all: the open shards of the server. Both with their OIDs. */
std::vector<OutsideChildren> find_outside_children(Connection& connection, const Shards& shards,
                                                   const Shards& all);
