/* The sequences of a split: direct draws read no table, so no trigger closes them. */

#pragma once

#include "base/clock.h"
#include "postgres/connection.h"

/* Reads all of them, without a lock. The switch is several times as fast when it finds them in the
 * caches of its session and of the server. */
void read_ahead(Connection& connection);

/* Behind close_shards(): no ID can be drawn directly, either. keeper: another connection to the
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
