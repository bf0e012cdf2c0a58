/* A table whose rows are read as they are stored: there is no plan and no expression, so no code of
 * its owner runs, and the rights are the caller's. */
#pragma once

#include "pg.h"

namespace snowflake::stored
{

/*
 * Locks the table in ACCESS SHARE mode to the end of the transaction. Who may act as the owner
 * needs no other right than the owner has.
 *
 *   42P01, 42809   no such relation, no ordinary table
 *   42501          no right to read all columns, or a policy that may hide rows
 */
Relation open(Oid oid);

/* Calls take for each row of the table alone, without its children. */
void read(Relation table, void (*take)(TupleTableSlot* row, void* state), void* state);

} // namespace snowflake::stored
