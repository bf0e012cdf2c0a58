/*
 * Queries that read a table of another owner. While a table is planned, functions in its index
 * expressions, statistics and CHECK constraints run with the rights of the planner's user.
 */
#pragma once

#include "pg.h"

namespace snowflake::owner_plan
{

/*
 * Calls work(argument), in which this owner is the current user. While a query that reads a table
 * of another role is planned, a function that belongs to neither this owner nor a superuser is an
 * error (2F003). The query that checks the rows for a new foreign key (RI_Initial_Check()) reads
 * the tables of both sides.
 */
void guard(Oid owner, void (*work)(void*), void* argument);

} // namespace snowflake::owner_plan
