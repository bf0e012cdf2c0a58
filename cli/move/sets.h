/* The sets of a list of moves: shards that move together, as one. */

#pragma once

#include <string>
#include <vector>

#include "base/shards.h"
#include "move/verb.h"
#include "plan/plan_file.h"

/* A move of --shards or --plan, and which databases its servers are, for all addresses of a
 * database the same. A server that was not reached is told by its connection string. */
struct ListedMove {
    PlanEntry entry;
    std::string source;
    std::string target;
    std::string end_state; /* if it is at its end: kMoved, or with kWithReverse; else empty */
    ShardSet record;       /* the set of which it is a part already */
    std::string oid;       /* of the schema on the source, if it is open there */
};

struct ListedSet {
    Shards shards; /* by number */
    std::string from;
    std::string to;
    std::string source;
    std::string target;
    std::string end_state;
    std::int64_t bytes; /* if it is to begin */
};

/* The sets in the order of their first moves. A set that exists stays as it is. New ones are of
 * shards that go from one database to one other and whose schemas have the same owner: at most
 * --together, and no more than --together-size if they are several. begins: sets may begin. */
std::vector<ListedSet> sets_of(const std::vector<ListedMove>& moves, const MoveOptions& options,
                               bool begins);
