/* The SQL function that locks a schema. */
#include "owner.h"
#include "pg.h"

using namespace snowflake;

extern "C" {

/* snowflake_internal.is_callers(schema regnamespace) returns boolean */
PG_FUNCTION_INFO_V1(snowflake_is_callers);
PGDLLEXPORT Datum snowflake_is_callers(PG_FUNCTION_ARGS)
{
    PG_RETURN_BOOL(owner::is_callers(PG_GETARG_OID(0)));
}
}
