/* What is in the way of a split, all of it at once. */

#pragma once

#include "move/obstacles.h"
#include "split/session.h"

/* More than this is an obstacle; less is waited for. */
inline constexpr std::int64_t kFarBehind = 16 << 20;

std::vector<Obstacle> find_obstacles(Connection& old, Connection& standby,
                                     const std::vector<SplitShard>& shards, const Limits& limits);

/* connections: those of the aliases to the old server, now. */
std::vector<Obstacle> find_too_few_connections(Connection& standby, int connections);

/* What stops nothing, and should be known before. */
void tell_of_both_servers(Connection& old, Connection& standby);
