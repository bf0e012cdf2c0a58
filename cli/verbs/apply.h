/* Changes in one shard: each in a transaction of its own, with the shard's schema as search_path.
 */

#pragma once

#include <string>
#include <vector>

#include "base/shards.h"
#include "verbs/changes.h"
#include "verbs/in_shard.h"

/* The SQL is wrong for every shard, so run stops at it, also with --keep-going. No ServerError:
 * apply() does not try it again. */
struct WrongForAll : Failure {
    using Failure::Failure;
};

/* The connection was lost, and with it the server's answer. No ServerError, because run reports a
 * lost connection with ServerError as "not done", and here the change may be there: the shard is
 * "failed". */
struct UnknownOutcome : Failure {
    using Failure::Failure;
};

/* Makes those changes that the shard has not had, in their order, each in a transaction of its own.
 * Returns whether there were any. An error is that of one change: the ones before it are made and
 * recorded, it has changed nothing, and the ones after it are not tried. ServerError: the server
 * refused it, or the connection was lost before COMMIT; WrongForAll, UnknownOutcome, and Failure
 * for the record. The connection may be left in a transaction: the caller rolls it back. */
bool apply(Connection& connection, const Shard& shard, const std::vector<Change>& changes,
           const RunOptions& options);
