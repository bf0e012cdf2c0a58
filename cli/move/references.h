/* Rows that violate a foreign key of the shard: made with triggers off, for example. The target
 * would refuse the key when all rows are copied. */

#pragma once

#include "move/obstacles.h"

/* One obstacle for each such key. Reads the tables with the rights of their owners, for half a
 * minute at most: a warning tells which keys are left. */
std::vector<Obstacle> find_broken_references(Connection& source, const Shard& shard);
