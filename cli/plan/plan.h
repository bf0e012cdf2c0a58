/* A plan of moves, and how it is printed. */

#pragma once

#include <vector>

#include "plan/distribution.h"
#include "plan/planner.h"
#include "verbs.h"

struct Plan {
    Distribution distribution;
    std::vector<PlannedServer> servers; /* those of the distribution, as the planner sees them */
    std::vector<PlannedShard> shards;
    std::vector<PlannedMove> moves;
};

/* The moves, each server before and after, and how long it may take. */
void print_text(const Plan& plan, const Options& options);

/* An array of moves, which a person can edit: shard, schema, from, to, size. */
void print_json(const Plan& plan);
