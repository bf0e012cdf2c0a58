/* All obstacles to a move at once, so that an operator can remove them together. */

#pragma once

#include <memory>

#include "base/shards.h"
#include "cutover/cutover.h"
#include "move/fingerprint.h"
#include "move/session.h"
#include "postgres/obstacles.h"

/* Locks on the shard that outlast the timeout: with these, later queries would wait without a
 * message. */
Obstacles find_locked(Connection& source, const Shards& shards, const Limits& limits);

/* publisher: the source as the target reaches it. limits: a transaction that has run longer than
 * the timeout is an obstacle. Changes nothing: the definition is tried in a transaction that is
 * rolled back. Warnings tell of facts that stop no move.
 *
 * tried: empty, and given if the target can make the definition. If it is there, a list was looked
 * at before its first move: definition and foreign keys, which take longest, are not tried a second
 * time, and no warning is repeated. */
Obstacles find_obstacles(Servers& servers, const Move& move, const std::string& publisher,
                         const Limits& limits, std::shared_ptr<const Tried>& tried);

/* The obstacles among them that can have come since the move began, and with which the target must
 * not be opened. Each cutover asks again, before anything is blocked. */
Obstacles find_obstacles_of_cutover(Servers& servers, const Move& move);

/* More obstacles, of --reversible alone. publisher: the target as the source reaches it. */
Obstacles find_obstacles_of_reverse(Servers& servers, const Move& move,
                                    const std::string& publisher, const Limits& limits);

/* The settings and rights of a server that publishes. A cutover that makes reverse replication asks
 * again for the target. */
Obstacles find_on_publisher(Connection& publisher);

/* The obstacles among them that can come up during the copy, and would stop make_reverse() when the
 * target is open. */
Obstacles find_obstacles_of_follower(Servers& servers, const Move& move,
                                     const std::string& publisher);

/* Tables whose rows logical replication cannot copy. */
Obstacles find_not_replicable(Connection& source, const Shards& shards);

/* Expressions of tables whose functions find a name by search_path alone: the rows that are there
 * are tried, up to 100 of each table, with the rights of its owner. */
Obstacles find_unqualified_names(Connection& source, const Shards& shards);

/* Warns if columns of type oid may point to large objects, which are not moved. */
void tell_of_large_objects(Connection& source, const Shards& shards);
/* Names tables without an index that the worker of the target could use. */
void tell_of_full_identity(Connection& source, const Connection& target, const Shards& shards);
/* Warns of materialized views when the shards are open there, and names the statements that refresh
 * them. */
void tell_of_old_views(Connection& opened, const Shards& shards);
