/*
 * What the owner of a table asks of its column of whole numbers before it makes IDs: the largest
 * value, and whether there are NULLs. Unlike peek.h it waits for a lock on the table, and never
 * gives up: without an index it reads all rows.
 *
 * No query is planned, so nothing of what others may have stored with the table is run: see
 * index_end.h.
 */
#pragma once

#include "pg.h"

namespace snowflake::catalog
{

struct ColumnEnd {
    bool has_values;
    std::int64_t largest; /* of the values up to the maximum */
    std::int64_t nulls;
};

/*
 * Of one table; its children and partitions are tables of their own. Rows are counted whatever a
 * policy hides, as in the owner's ALTER TABLE.
 *
 * Errors: 42501 not the owner, 42809 no table, or one of another session, 42703 no such column.
 */
ColumnEnd read_column_end(Oid table, std::int32_t column, std::int64_t maximum);

} // namespace snowflake::catalog
