/* The rights with which rows are written on the subscribing server. */

#pragma once

#include "base/shards.h"
#include "move/session.h"
#include "postgres/obstacles.h"
#include "replication/subscription.h"

Owners read_owners(Connection& home, const Shards& shards);

/* The workers of a subscription run code in the tables: CHECK constraints, domains, generated
 * columns, indexes, triggers that are ENABLE ALWAYS. An owner can add such code at any time of the
 * copy and of reverse replication, so to look at it does not help: it must have the rights of the
 * owner alone.
 *
 * From PostgreSQL 16 on a worker writes to each table as its owner, in a security-restricted
 * operation (SwitchToUntrustedUser()). PostgreSQL 15 writes as the owner of the subscription: that
 * is a role of the move's own, which is a member of the tables' owner and of no other role. */

/* Why the workers cannot write in this way: a table whose owner lacks a right, or has forced row
 * security; before 16, tables of several roles. Superusers and the current role gain nothing, so
 * their tables are left out. home: the server where the shard is open. The target gets policies and
 * row security after the rows. */
Obstacles find_obstacles_of_workers(const Connection& subscriber, Connection& home,
                                    const Shards& shards);

/* After CREATE SUBSCRIPTION, in its transaction: before 16 gives it to that role, which is made. A
 * Failure if there is such an obstacle: an owner can force row security after the obstacles were
 * looked for. */
void give_to_worker(Connection& subscriber, Connection& home, const Move& move);

/* Statements that drop that role, after the subscription; "" if there is none. */
std::string removal_of_worker(Connection& subscriber, const Move& move);
