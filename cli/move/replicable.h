/* Tables whose rows logical replication cannot copy, and rows that the target would refuse. */

#pragma once

#include "base/shards.h"
#include "postgres/obstacles.h"

Obstacles find_not_replicable(Connection& source, const Shard& shard);

/* A warning if columns of type oid may point to large objects, which stay behind. */
void tell_of_large_objects(Connection& source, const Shard& shard);

/* Rows that violate a foreign key of the shard: made with triggers off, for example. The target
 * would refuse the key when all rows are copied. One obstacle for each such key. Reads the tables
 * with the rights of their owners, for half a minute at most: a warning tells which keys are left.
 */
Obstacles find_broken_references(Connection& source, const Shard& shard);
