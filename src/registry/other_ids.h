/*
 * The IDs of a table that are not of its shard, for snowflake-shard verify. Numbers below 2^53 are
 * no IDs of this scheme, and not counted.
 *
 * No query is planned, because the planner runs functions that other roles stored with the table:
 * see index_end.h.
 */
#pragma once

#include "pg.h"
#include "rule/layout.h"

namespace snowflake::registry
{

struct OtherIds {
    std::int64_t count;
    std::int64_t smallest; /* if the count is not 0 */
};

/*
 * Reads one table; its children and partitions are tables of their own. With a sample of 0 it reads
 * all rows, otherwise about as many as the sample, as TABLESAMPLE SYSTEM chooses them, and 100 rows
 * at each end of a btree index that begins with the column, if there is one.
 *
 * Errors: 42501 no SELECT on the column, or a policy may hide rows; 42809 no table, or one of
 * another session; 42703 no such column of type bigint.
 */
OtherIds find_other_ids(Oid table, std::int32_t column, Shard shard, std::int32_t sample);

} // namespace snowflake::registry
