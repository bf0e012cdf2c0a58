/* The findings of verify that the catalogue alone shows. Rows: kind, server, object, problem, hint.
 */

#pragma once

#include <vector>

#include "base/shards.h"
#include "base/table.h"
#include "postgres/connection.h"

/* Errors of snowflake_check(), and relations that it could not read; and how many warnings it
 * has. */
struct Checks {
    std::vector<Row> findings;
    std::size_t warnings = 0;
};
Checks read_checks(Connection& connection);

/* Objects of moves and clones that are gone. */
Result find_leftovers(Connection& connection);

/* The indexes of open shards that are not valid. */
Result find_invalid_indexes(Connection& connection, const Shards& shards);

/* Foreign keys of open shards whose triggers are disabled. */
Result find_disabled_keys(Connection& connection, const Shards& shards);
