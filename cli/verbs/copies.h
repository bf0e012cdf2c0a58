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

/* Compares each shard that one of the servers has open or closed with its copy on another one,
 * where that has all rows and follows it: during a move after the copy, and in reverse replication.
 * Shards whose rows cannot be compared are named on the standard error, and are no findings: the
 * exit code says nothing of them. A ServerError is thrown. */
std::vector<CopyFinding> compare_copies(ServerSet& servers);
