/*
 * The SQL function that runs a definition with the rights of its owner, which can hold code of that
 * owner.
 *
 * SET ROLE would not help, because code that runs in the session can reset the role. So the text
 * runs as the query of REFRESH MATERIALIZED VIEW does (ExecRefreshMatView()): the current user is
 * the owner, and a security-restricted operation refuses everything that could outlast it, or lead
 * back: SET ROLE, SET SESSION AUTHORIZATION, temporary tables, PREPARE, LISTEN, DISCARD, cursors
 * WITH HOLD, deferred triggers. Settings that the text changes get their old values at the end. An
 * error ends all of that, too: AbortTransaction() and AbortSubTransaction() restore the user.
 *
 * Whether the owner's rights hold, or the caller's, is decided in owner.cpp.
 */
#include "errors.h"
#include "owner.h"
#include "owner_plan.h"
#include "pg.h"

using namespace snowflake;

namespace
{

/* Statements are parsed one after the other, as in a script (SPI_execute() makes one-shot plans). A
 * statement that runs in no function is an error: 25001, as the server has it; 2D000 for BEGIN,
 * COMMIT and the like; 0A000 for COPY FROM STDIN. */
void run(const char* statements)
{
    SPIExecuteOptions options = {};
    options.dest = CreateDestReceiver(DestNone); /* rows of a SELECT fill no memory */
    /* pg_stat_activity shows the statements, and not the call of this function. */
    pgstat_report_activity(STATE_RUNNING, statements);
    SPI_connect();
    /* A trigger that is to fire at COMMIT, without the rights of the owner, is an error here
     * (afterTriggerMarkEvents()). So all fire at the end of their statement. */
    SPI_execute("SET CONSTRAINTS ALL IMMEDIATE", false, 0);
    const int result = SPI_execute_extended(statements, &options);
    if (result == SPI_ERROR_TRANSACTION)
        ereport(ERROR, (errcode(ERRCODE_INVALID_TRANSACTION_TERMINATION),
                        errmsg("the SQL begins or ends a transaction itself")));
    if (result == SPI_ERROR_COPY)
        ereport(ERROR,
                (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                 errmsg("COPY FROM STDIN and COPY TO STDOUT are not possible here: use psql")));
    if (result < 0)
        elog(ERROR, "SPI_execute_extended failed: %s", SPI_result_code_string(result));
    SPI_finish();
}

} // namespace

extern "C" {

/* snowflake_internal.is_callers(schema regnamespace) returns boolean */
PG_FUNCTION_INFO_V1(snowflake_is_callers);
PGDLLEXPORT Datum snowflake_is_callers(PG_FUNCTION_ARGS)
{
    PG_RETURN_BOOL(owner::is_callers(PG_GETARG_OID(0)));
}

/* snowflake_internal.run_as_role(role name, statements text) returns void */
PG_FUNCTION_INFO_V1(snowflake_run_as_role);
PGDLLEXPORT Datum snowflake_run_as_role(PG_FUNCTION_ARGS)
{
    char* statements = text_to_cstring(PG_GETARG_TEXT_PP(1));
    const Oid role = get_role_oid(NameStr(*PG_GETARG_NAME(0)), false);
    owner::Rights rights = {};
    owner::become_role(rights, role);
    owner_plan::guard(
        role, [](void* argument) { run(static_cast<const char*>(argument)); }, statements);
    owner::become_again(rights);
    PG_RETURN_VOID();
}
}
