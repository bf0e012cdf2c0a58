/*
 * Functions of versions 1.0 and 1.1 that later ones have not. Their install scripts name them, and
 * CREATE FUNCTION looks for them in the library: in CREATE EXTENSION ... VERSION, and in
 * pg_upgrade.
 */
#include "pg.h"

namespace
{

Datum refuse()
{
    ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                    errmsg("the library is newer than the extension in this database"),
                    errhint("ALTER EXTENSION snowflake UPDATE;")));
}

} // namespace

/* NOLINTNEXTLINE(cppcoreguidelines-macro-usage): PG_FUNCTION_INFO_V1 takes a name */
#define REMOVED(name)                                                                              \
    PG_FUNCTION_INFO_V1(name);                                                                     \
    PGDLLEXPORT Datum name(PG_FUNCTION_ARGS)                                                       \
    {                                                                                              \
        (void)fcinfo;                                                                              \
        return refuse();                                                                           \
    }

extern "C" {

REMOVED(snowflake_columns_as_owner)
REMOVED(snowflake_is_callers)
REMOVED(snowflake_is_maintenance)
REMOVED(snowflake_replace_guarded)
REMOVED(snowflake_rows_as_owner)
REMOVED(snowflake_rows_as_table_owner)
REMOVED(snowflake_run_as_owner)
REMOVED(snowflake_run_as_role)
REMOVED(snowflake_run_guarded)
}
