/* The moves of --shards and --plan, checked as a whole against their servers. */

#pragma once

#include <string>
#include <vector>

#include "move/verb.h"
#include "plan/plan_file.h"

/* One move, and which databases its servers are, for all addresses of a database the same. A server
 * that was not reached is told by its connection string. */
struct ListedMove {
    PlanEntry entry;
    std::string source;
    std::string target;
    std::string end_state; /* if it is at its end: kMoved, or with kWithWayBack; else empty */
};

/* Each connection string of the list is connected to once, all at the same time, and no connection
 * stays open. Failure that tells the problems of all entries: a server that cannot be read, a
 * number that is not that of the schema there, a number that several schemas of the source have;
 * UsageError if one of them is a wrong string, or one server as both sides.
 *
 * begins: moves may begin. Else they act on moves that exist, each by itself: a server that is down
 * is an error of its own moves, and not of the list. */
std::vector<ListedMove> read_list(const MoveOptions& options, bool begins);
