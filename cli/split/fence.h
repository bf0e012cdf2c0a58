/* The fence of a split: on both servers no row and no ID is made of a shard that is not theirs.
 * Readers are not blocked. */

#pragma once

#include <string>

#include "base/clock.h"
#include "postgres/connection.h"

/* The triggers that wait on every table of every shard: one table at a time, where one is missing.
 * Clients write meanwhile. A Failure if others lock a table for a minute. */
void make_triggers(Connection& old);

/* Late if a table has none. In a catalogue of thousands of shards it takes tens of milliseconds, so
 * it is called before clients are held, too. */
void require_triggers(Connection& old);

/* Closes the shards that leave, for every statement that begins later; and returns when the
 * transactions that have begun to write before have ended. Late if one has not, or if a table has
 * no trigger. The shards may be closed then: lower_fence() opens them. */
void close_shards(Connection& old, Clock::time_point deadline);

/* After this and close_sequences(): everything of the shards is in the WAL before this commit,
 * which has a new seal, a UUID. */
std::string seal_shards(Connection& old, Clock::time_point deadline);

/* Opens the shards on the old server again, or does nothing if they are open. The caller knows that
 * the standby was not promoted, and will not be. A Failure says that they may still be closed; it
 * can be called again then. */
void lower_fence(Connection& old, Clock::time_point deadline);

/* Of close(): nothing needs it when the split is at its end. If it is gone, nothing happens. */
void drop_slot(Connection& connection);

/* On the standby that was promoted: opens the shards that leave, and closes the others. After an
 * error it can be called again. */
void open_shards(Connection& standby, Clock::time_point deadline);

/* The sequences of a split: direct draws read no table, so no trigger closes them. */
/* Reads all of them, without a lock. The cutover is several times as fast when it finds them in the
 * caches of its session and of the server. */
void read_ahead(Connection& connection);

/* After close_shards(): no ID can be drawn directly, either. keeper: another connection to the
 * same database, which commits the positions. Late if others lock a sequence until the deadline. */
void close_sequences(Connection& old, Connection& keeper, Clock::time_point deadline);

/* On the standby that was promoted, for the shards that stay. Their positions are not kept. */
void end_sequences(Connection& standby, Clock::time_point deadline);

/* Leads those of the shards that leave back to the positions that close_sequences() has kept. It
 * passes over sequences that are not at their end, so it can be repeated. */
void release_sequences(Connection& connection, Clock::time_point deadline);

/* Afterwards, on both servers: sequences that are closed say so by their bounds, for
 * snowflake_check() and for the error of a draw. */
void mark_closed_sequences(Connection& connection);
