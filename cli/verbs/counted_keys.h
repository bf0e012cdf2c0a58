/* Keys that each shard counts by itself. */

#pragma once

#include <string>
#include <vector>

#include "base/shards.h"
#include "postgres/connection.h"

struct CountedKey {
    std::string column;
    std::string statement; /* that makes its keys IDs, in one shard */
    std::int64_t shards;   /* that have it */
};

/* Keys that are serial or identity columns, as the migration of a new model makes them: the rows of
 * all shards have the keys 1, 2, 3, and a key does not lead to its shard. */
std::vector<CountedKey> find_counted_keys(Connection& connection, const Shards& shards);
void warn_of(const std::vector<CountedKey>& keys);
