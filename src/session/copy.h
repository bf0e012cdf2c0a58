/* Rows in a format of COPY, in the process that is the session of the table's owner. */
#pragma once

#include "table.h"

namespace snowflake::session::copy
{

/*
 * Locks the table, and inserts the rows of a request: the number of columns and their names, the
 * format and the input of a COPY ... FROM STDIN. Sends their number. To logical decoding the rows
 * are replicated ones: a reader of this server alone (origin = none) gets none of them.
 */
void insert(StringInfo request, table::OfOwner of, bool waits);

} // namespace snowflake::session::copy
