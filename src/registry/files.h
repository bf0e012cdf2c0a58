/*
 * The files of relations, found by rows of pg_class: the relation is not opened, so it stays in no
 * session's memory, and no lock is waited for.
 */
#pragma once

#include "pg.h"

namespace snowflake::registry
{

/* Bytes; 0 if there is no such file. tablespace 0: that of the database. */
std::int64_t size_of_fork(Oid tablespace, Oid file, ForkNumber fork);

/* The table has no row, not even one that a snapshot of today sees no more. False if that is not
 * known: a temporary table, or no table. */
bool is_empty(Oid table);

} // namespace snowflake::registry
