/* A query whose rows are read by FETCH, in the process that is the session of another role. */
#pragma once

#include "pg.h"

namespace snowflake::session::query
{

/* Opens the cursor snowflake_rows in the transaction that is under way, and sends its columns.
 * 42601 if the text is not one query that changes nothing. parameters: at most two, bigint. */
void open(const char* sql, int count, Datum* parameters);

} // namespace snowflake::session::query
