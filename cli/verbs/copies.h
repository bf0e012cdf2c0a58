/* The rows of shards that another server follows, for verify --rows. */

#pragma once

#include <string>
#include <vector>

#include "fleet/findings.h"
#include "postgres/servers.h"

struct CopyFinding {
    std::string server; /* that has the copy */
    MoveFinding finding;
};

struct ComparedCopies {
    std::vector<CopyFinding> findings{};
    bool is_all = true; /* no shard was locked, had an error, or was written to all the time */
};

/* Compares each shard that one of the servers has open or closed with its copy on another one,
 * where that has all rows and follows it: during a move after the copy, and in reverse replication.
 * Shards whose rows cannot be compared are named on the standard error, and are no findings. It
 * looks for rows that violate a key which leaves the set, too, in each set that has a record. A
 * ServerError is thrown only if a server is lost. */
ComparedCopies compare_copies(ServerSet& servers);
