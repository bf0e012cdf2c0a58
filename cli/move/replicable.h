/* Tables whose rows logical replication cannot copy. */

#pragma once

#include <vector>

#include "move/obstacles.h"

std::vector<Obstacle> find_not_replicable(Connection& source, const Shard& shard);

/* A warning if columns of type oid may point to large objects, which stay behind. */
void tell_of_large_objects(Connection& source, const Shard& shard);
