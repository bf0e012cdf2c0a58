/* The SQL that a move leaves on both servers: its state, the fence, and the way back. */

#pragma once

#include <string>

/* Makes the schema of a move, snowflake_move_5, with its tables and functions:
 *
 *   state     one row: what this side is at
 *   marker    published; a row of it says that everything before it has been replicated, and
 * carries the positions of the shard's sequences undo      the statements that lift the fence
 *   close()   raises the fence in the transaction that calls it, and returns the positions
 *   reopen()  lifts it */
std::string move_schema_sql(const std::string& name);
