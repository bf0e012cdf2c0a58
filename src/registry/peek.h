/*
 * Reads the values of sequences and columns, for snowflake_check() and the views. It never waits
 * for a lock, and releases the one that it takes at once: nobody can make it hang, and thousands of
 * tables need no larger lock table. No expression, policy or operator of the tables' owners is run.
 */
#pragma once

#include "pg.h"
#include "rule/position.h"

namespace snowflake::registry
{

/*
 * False where the caller may not read the sequence, where it is no sequence, another session's, or
 * being changed, and where its page is corrupted: a draw reports that. record: the last WAL record
 * of the page, which protects the value; invalid where the sequence writes no WAL.
 */
bool peek_sequence(Oid sequence, Stored* stored, XLogRecPtr* record = nullptr);

/*
 * The largest ID of the shard in a bigint column, if it is of a later millisecond than the
 * sequence's position. The sequence makes no ID of another shard again, so these are passed over:
 * replication brings them. Numbers below 2^53, which are no IDs, count like those of the shard.
 * Found in the last 1,000 entries of a btree index that begins with the column.
 *
 * False also where there is no such index of all rows, where the caller may not read all of the
 * column or the sequence, or where the last entries are of dead rows and of other shards.
 */
bool find_id_above(Oid table, std::int32_t column, Shard shard, Oid sequence, Epoch epoch,
                   Id* largest);

/*
 * The largest position that a bigint column holds, as nextval() returns it: a value of 2020 or
 * later up to kMaxPosition. An ID is that small in the first 13 days of its epoch only; it is told
 * from a position by its shard. Otherwise like find_id_above().
 */
bool find_stored_position(Oid table, std::int32_t column, Shard shard, Position* largest);

} // namespace snowflake::registry
