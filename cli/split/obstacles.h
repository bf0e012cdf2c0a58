/* The obstacles of a split, all at once. */

#pragma once

#include "fleet/records.h"
#include "cutover/cutover.h"
#include "postgres/obstacles.h"

/* More than this is an obstacle; less is waited for. */
inline constexpr std::int64_t kFarBehind = 16 << 20;

/* Changes nothing on either server. The schemas of all shards count, also of those that stay,
 * because their tables get triggers, too. */
Obstacles find_obstacles(Connection& old, Connection& standby,
                         const std::vector<SplitShard>& shards, const Limits& limits);

/* connections: those of the aliases to the old server, now. PgBouncer opens as many to the standby
 * when it leads the clients there. */
Obstacles find_too_few_connections(Connection& standby, int connections);

/* Warnings: they do not stop the split. */
void tell_of_both_servers(Connection& old, Connection& standby);
/* The command that gives the new server a slot of its own, or makes it a follower. when: "Now: ".
 */
void tell_of_global_tables(Connection& old, Connection& standby, const std::string& when);
