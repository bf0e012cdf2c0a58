/* Tables whose rows logical replication cannot copy. */

#pragma once

#include <vector>

#include "move/obstacles.h"

std::vector<Obstacle> find_not_replicable(Connection& source, const Shard& shard);

/* A warning if columns of type oid may point to large objects, which stay behind. */
void tell_of_large_objects(Connection& source, const Shard& shard);

/* Warns of functions of other roles that the workers of the target would run with the rights of
 * this role: see subscription_sql(). */
void tell_of_code(Connection& source, const Connection& target, const Shard& shard);
