/* The changes that run makes: SQL from the command line, from a file, or from the files of a
 * folder.
 */

#pragma once

#include <string>
#include <vector>

#include "postgres/connection.h"
#include "verbs.h"

struct Change {
    std::string name; /* under which a shard records it; empty: it is not recorded */
    std::string sql;
    std::string hash; /* SHA-256 of the SQL in hexadecimal, as sha256sum prints it */
};

/* Without hashes. */
std::vector<Change> read_changes(const Options& options);

/* Of those with a name. The server computes them. */
void add_hashes(Connection& connection, std::vector<Change>& changes);
