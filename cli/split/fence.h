/* The fence of a split: on both servers no row and no ID is made of a shard that is not theirs.
 * Readers are not blocked. */

#pragma once

#include <string>
#include <vector>

#include "clock.h"
#include "split/state.h"

/* Makes the schema of the split, in a transaction of the caller. */
void make_split(Connection& old, const std::string& new_server,
                const std::vector<SplitShard>& shards);

/* The triggers that wait on every table of every shard: one table at a time, where one is missing.
 * Clients write meanwhile. */
void make_triggers(Connection& old);

/* Closes the shards that leave, for every statement that begins later; and returns when those that
 * have begun before have ended. */
void close_shards(Connection& old, Clock::time_point deadline);

/* Behind close_shards(): no ID can be drawn directly, either. keeper: another connection to the
 * same database. */
void close_sequences(Connection& old, Connection& keeper, Clock::time_point deadline);

/* Behind both: everything of the shards is in the WAL before this commit, which has a new seal. */
std::string seal_shards(Connection& old, Clock::time_point deadline);

/* Opens the shards on the old server again. The caller knows that the standby was not promoted, and
 * will not be. */
void lower_fence(Connection& old, Clock::time_point deadline);

/* Afterwards, on both servers: sequences that are closed say so by their bounds, for
 * snowflake_check() and for the error of a draw. */
void mark_closed_sequences(Connection& connection);
