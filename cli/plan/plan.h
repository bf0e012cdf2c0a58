/* A plan of moves, and how it is printed. */

#pragma once

#include <vector>

#include "plan/distribution.h"
#include "plan/planner.h"
#include "plan/verb.h"

/* The shards of both lists are in one order, so a PlannedMove's shard is an index into either. The
 * same holds for the servers. */
struct Plan {
    Distribution distribution;
    std::vector<PlannedServer> servers; /* those of the distribution, as the planner sees them */
    std::vector<PlannedShard> shards;
    PlanLimits limits;
    std::vector<PlannedMove> moves;
};

/* The moves, each server before and after, and how long it may take. */
void print_text(const Plan& plan, const PlanOptions& options);

/* An array of moves, which a person can edit: shard, schema, from, to, size. The file is the input
 * of move --plan, which does not read the size: it is for the person. [] if there is nothing to
 * move. */
void print_json(const Plan& plan);
