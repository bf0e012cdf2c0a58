/* The SQL function of snowflake_attach() that is not SQL. */
#include "pg.h"

extern "C" {

/*
 * snowflake_internal.attach_sequence_name(schema regnamespace, tbl name, col name) returns name: as
 * for a serial column, so that a tool that guesses the name guesses right.
 */
PG_FUNCTION_INFO_V1(snowflake_attach_sequence_name);
PGDLLEXPORT Datum snowflake_attach_sequence_name(PG_FUNCTION_ARGS)
{
    const char* chosen = ChooseRelationName(
        NameStr(*PG_GETARG_NAME(1)), NameStr(*PG_GETARG_NAME(2)), "seq", PG_GETARG_OID(0), false);
    return DirectFunctionCall1(namein, CStringGetDatum(chosen));
}
}
