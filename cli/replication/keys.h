/* Foreign keys of shards, beside logical replication: an apply worker fires no ordinary trigger,
 * and so does not check its rows. Within a set the rows are those that the other server has
 * checked. A key leaves the set if it refers to a table of another schema, whose rows are not
 * replicated with it. */

#pragma once

#include "base/clock.h"
#include "base/shards.h"
#include "postgres/obstacles.h"

/* Rows that violate a key: made with triggers off, for example. ADD CONSTRAINT would refuse the
 * key. One obstacle for each such key, of those that leave the set alone if that is asked. Reads
 * the tables with the rights of their owners, for half a minute at most: a warning tells which keys
 * are left. */
Obstacles find_broken_references(Connection& connection, const Shards& shards,
                                 bool only_leaving = false);

/* Rows that a table of another schema lacks on the target, and to which rows of the source refer.
 * One obstacle for each such key. For half a minute at most, too. */
Obstacles find_missing_references(Connection& source, Connection& target, const Shards& shards);

/* Lets the keys that leave the set check replicated rows, too: a row that would violate one is an
 * error of the apply worker, which tries again. In a transaction of the caller. */
void check_replicated_rows(Connection& follower, const Shards& shards);
/* The opposite, when no worker writes any more. A lock for each table, in a transaction of its own;
 * Late at the deadline. */
void end_check_of_replicated_rows(Connection& follower, const Shards& shards,
                                  Clock::time_point deadline);
