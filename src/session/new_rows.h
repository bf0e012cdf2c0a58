/*
 * A query of new rows: those after the ID $1, up to the settled ID $2. The next one begins after
 * $2.
 */
#pragma once

#include "pg.h"

namespace snowflake::new_rows
{

/* A plan of DECLARE CURSOR. 0A000 if a LIMIT or OFFSET could leave out rows: no later query would
 * return them. */
void require_all(SPIPlanPtr plan);

} // namespace snowflake::new_rows
