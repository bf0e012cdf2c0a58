/* The requests of the caller, in the process that is the session of another role. */
#pragma once

#include "pg.h"

namespace snowflake::session
{

/*
 * Runs one request; the answer goes to the queue. memory: lasts until the end of the request.
 *
 *   2D000, 0A000   the SQL of others begins or ends a transaction; COPY FROM STDIN and TO STDOUT
 *   0A000          it has changed client_encoding
 *   42601          not one query, not one statement
 *   25P02          the transaction is aborted
 *   55000          the schema or table belongs to another role than that of the session
 *   42501, 42P01   a query of a table names a relation of another role; it does not name the table;
 *                  the caller may not make or rename the schema, or comment on the object
 */
void execute(StringInfo request, Oid role, MemoryContext memory);

} // namespace snowflake::session
