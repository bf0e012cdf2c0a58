/* A picture of the servers: a block for each, in it a cell for each shard, coloured by its size.
 * Shards that move are outlined where they are, and have an empty cell where they go. Colours and
 * bars are of bytes, also if plan weighs by rows or by a file. moves: places in the distribution's
 * lists; empty for map. */

#pragma once

#include <vector>

#include "plan/distribution.h"
#include "plan/planner.h"

void print_picture(const Distribution& distribution, const std::vector<PlannedMove>& moves);
