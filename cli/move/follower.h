/* The rows of a shard against those of the server that follows it by logical replication, while
 * clients may write: for verify. */

#pragma once

#include <string>
#include <vector>

#include "move/session.h"

/* The result of a comparison of a shard's tables. */
struct FollowerRows {
    std::vector<std::string> differences; /* "table insta5.users: ..." */
    std::vector<std::string> unknown;     /* the same, of rows that are written to all the time */
};

/* The follower reads the slot of the publisher. A Failure if it does not, or does not catch up.
 * Each table is read on its own, with up to three tries; nothing is locked against writing. */
FollowerRows compare_with_follower(Connection& publisher, Connection& follower, const Shard& shard,
                                   const std::string& slot);
