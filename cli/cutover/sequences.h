/* The sequences of a fence: direct draws read no table, so no trigger stops them. leave: those of
 * the shards that leave; else, in a split, of those that stay. */

#pragma once

#include "cutover/fence.h"

/* Reads all of them, without a lock. The cutover is several times as fast when it finds them in the
 * caches of its session and of the server. */
void read_ahead(Connection& connection, const Fence& fence);

/* The keeper is a session of its own, see sequences.cpp. One at a time has its lock: a statement of
 * a command that was killed must not replace a later position. */
void lock_keeper(Connection& keeper, const Fence& fence);
/* Sets the sequences of the shards that leave to their end, after await_writers_before(): no ID can
 * be drawn directly, either. keeper: another connection to the same database, which commits their
 * positions. Late if others lock a sequence until the deadline. It can be repeated: where a
 * sequence is at its end, the position that was kept holds. */
void close_sequences(Connection& connection, const Fence& fence, Connection& keeper,
                     Clock::time_point deadline);
/* The same for the copies of a standby, whose positions are not kept. */
void end_sequences(Connection& connection, const Fence& fence, bool leave,
                   Clock::time_point deadline);
/* Leads those of the shards that leave back to the positions that close_sequences() has kept. It
 * passes over sequences that are not at their end, so it can be repeated. */
void release_sequences(Connection& connection, const Fence& fence, Clock::time_point deadline);
/* Marks closed sequences by their bounds, for snowflake_check() and for the error of a draw. Call
 * it when clients write elsewhere. Marked sequences are passed over. */
void mark_sequences(Connection& connection, const Fence& fence, bool leave);
