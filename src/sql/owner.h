/* Whether SQL of a schema has the rights of the caller anyway. */
#pragma once

#include "pg.h"

namespace snowflake::owner
{

bool is_callers(Oid schema); /* it is locked as a table is */

} // namespace snowflake::owner
