/* The file of move --plan, as plan --json writes it. A person may have edited it, so every field is
 * checked. */

#pragma once

#include <string>
#include <vector>

struct PlanEntry {
    int number;
    std::string schema;
    std::string from; /* connection strings */
    std::string to;
};

/* The entries of a file, - for the standard input; an error that names the entry if one cannot be
 * read, or if a shard is in two. */
std::vector<PlanEntry> read_plan(const std::string& file);
