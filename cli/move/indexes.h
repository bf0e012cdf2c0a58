/* The large indexes of a shard, built on the target side by side. */

#pragma once

#include <string>
#include <vector>

#include "move/session.h"
#include "postgres/dump.h"

/* Takes the large ones out of the items, and returns those that the target does not have yet, the
 * largest first. They are ordinary indexes: a partitioned one is made without its parts. */
std::vector<Archive::Item> take_large_indexes(Servers& servers, const Shard& shard,
                                              std::vector<Archive::Item>& items);

/* Each statement in a transaction of its own, by as many sessions of the target. An index that is
 * built stays if another one fails or the command is killed. */
void build_indexes(Connection& target, const Move& move, const std::vector<std::string>& statements,
                   const std::string& sole_owner, int sessions);
