/*
 * A query whose tables all belong to one owner. While a table is planned, functions in its index
 * expressions, statistics and CHECK constraints run with the rights of the planner's user. The text
 * of a query names its tables, and a name can lead to another table each time that it is looked up:
 * in parse analysis, and again when the plan cache finds that a name has changed. So the tables are
 * looked at where none of their code has run yet and their OIDs are final: in planner_hook.
 */
#pragma once

#include "pg.h"

namespace snowflake::owner_plan
{

/*
 * Calls work(argument). The first query that is planned in it must read the table, and no table of
 * another owner, also none that inherits from one that it names. 42501 for another owner's, 42P01
 * if the table is not read. The planner has locks on all of them by then, so their owners stay.
 */
void expect(Oid table, Oid owner, void (*work)(void*), void* argument);

/*
 * Calls work(argument), in which this owner is the current user. While a query that reads a table
 * of another role is planned, a function that belongs to neither this owner nor a superuser is an
 * error (2F003). The query that checks the rows for a new foreign key (RI_Initial_Check()) reads
 * the tables of both sides.
 */
void guard(Oid owner, void (*work)(void*), void* argument);

} // namespace snowflake::owner_plan
