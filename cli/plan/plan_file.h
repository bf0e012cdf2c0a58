/* The file of move --plan, as plan --json writes it. A person may have edited it, so every field is
 * checked. */

#pragma once

#include <string>
#include <vector>

/* One move. The schema says which shard moves, and the number must be that of the schema: list.h
 * compares them with the servers. */
struct PlanEntry {
    int number;
    std::string schema;
    std::string from; /* connection strings */
    std::string to;
};

/* The entries of a file, - for the standard input; an error that names the entry if one cannot be
 * read, or if a shard is in two. Errors are UsageErrors, and no server was asked before. */
std::vector<PlanEntry> read_plan(const std::string& file);
