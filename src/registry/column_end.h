/*
 * The largest value of a column of whole numbers, and the count of its NULLs, for the owner of the
 * table before the column gets IDs. Unlike peek.h it waits for a lock on the table, and never
 * gives up: without an index it reads all rows.
 *
 * No query is planned, because the planner runs functions that other roles stored with the table:
 * see index_end.h.
 */
#pragma once

#include "pg.h"

namespace snowflake::registry
{

struct ColumnEnd {
    bool has_values;
    std::int64_t largest; /* of the values up to the maximum */
    std::int64_t nulls;
};

/*
 * Reads one table; its children and partitions are tables of their own. Rows that a policy
 * hides count, too, as in the owner's ALTER TABLE.
 *
 * Errors: 42501 not the owner, 42809 no table, or one of another session, 42703 no such column.
 */
ColumnEnd read_column_end(Oid table, std::int32_t column, std::int64_t maximum);

} // namespace snowflake::registry
