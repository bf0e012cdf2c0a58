/* Changes in one shard: each in a transaction of its own, with the shard's schema as search_path.
 */

#pragma once

#include <string>
#include <vector>

#include "postgres/catalog.h"
#include "verbs/changes.h"

/* The SQL is wrong for every shard. */
struct WrongForAll : Failure {
    using Failure::Failure;
};

/* The connection was lost, and with it the server's answer. */
struct UnknownOutcome : Failure {
    using Failure::Failure;
};

/* Makes those changes that the shard has not had, in their order. Returns whether there were any.
 * An error is that of one change: the ones before it are made, it has changed nothing. */
bool apply(Connection& connection, const Shard& shard, const std::vector<Change>& changes,
           const Options& options);
