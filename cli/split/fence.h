/* The fence of a split, over cutover/fence.h: on both servers no row and no ID is made of a shard
 * that is not theirs. */

#pragma once

#include <string>
#include <vector>

#include "cutover/fence.h"
#include "fleet/records.h"

inline Fence split_fence()
{
    return {kSplitSchema, "snowflake_split"};
}

/* Makes the schema snowflake_split: the record of a split, and the functions that close and open
 * shards and sequences. In a transaction of the caller. new_server: the address of the standby,
 * with which later commands compare theirs. An error if a schema of that name is there, of any
 * owner. */
void make_split(Connection& old, const Address& new_server, const std::vector<SplitShard>& shards);

/* Closes the shards that leave, for every statement that begins later; and returns when the
 * transactions that have begun to write before have ended. Late if one has not, or if a table has
 * no trigger. The shards may be closed then: lower_fence() opens them. */
void close_shards(Connection& old, Clock::time_point deadline);

/* Writes a new seal, a UUID, after close_shards() and close_sequences(): everything of the shards
 * is in the WAL before this commit. */
std::string seal_shards(Connection& old, Clock::time_point deadline);

/* Opens the shards on the old server again, or does nothing if they are open. The caller knows that
 * the standby was not promoted, and will not be. A Failure says that they may still be closed; it
 * can be called again then. */
void lower_fence(Connection& old, Clock::time_point deadline);

/* Drops the slot that close() has made: nothing needs it when the split is at its end. If it is
 * gone, nothing happens. */
void drop_slot(Connection& connection);

/* Opens the shards that leave on the promoted standby, and closes the others. After an error it can
 * be called again. */
void open_shards(Connection& standby, Clock::time_point deadline);
