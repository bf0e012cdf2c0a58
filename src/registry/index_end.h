/*
 * The ends of a btree index that begins with a column of whole numbers. The comparisons are those
 * of the family integer_ops, which only a superuser can change, and no query is planned: no
 * expression, predicate, statistics object, constraint or policy of the table's owner is computed.
 */
#pragma once

#include "pg.h"

namespace snowflake::registry
{

/* A valid index of all rows that begins with the column; InvalidOid: there is none. */
Oid index_beginning_with(Oid table, std::int32_t column);

/* Whether the index orders its first column as smallint, integer or bigint. */
bool orders_integers(Relation index);

/* A value of smallint, integer or bigint. */
std::int64_t integer_of(Datum value, Oid type);

/* Entries from the largest value up to the maximum on: NULLs are left out. */
void begin_at_end(IndexScanDesc scan, std::int64_t maximum);
bool next_entry(IndexScanDesc scan);

/* Entries from the minimum up to the largest value. */
void begin_at_start(IndexScanDesc scan, std::int64_t minimum);
bool next_entry_upwards(IndexScanDesc scan);

} // namespace snowflake::registry
