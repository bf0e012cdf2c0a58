/*
 * The SQL functions that run a dump of a shard. Most of its statements need the rights of the role
 * that gives it, such as that to refer to a table of another owner. But some evaluate expressions
 * of the shard while they make an object: constants in generated columns and in CHECK constraints
 * of partitions, the CHECK of a domain when a constant of an array of it is read.
 *
 * run_guarded() lets no function run there that another role could have chosen for its effects. The
 * executor calls object_access_hook before it runs a function of an expression (ExecInitFunc(), and
 * all other callers of InvokeFunctionExecuteHook()). The hook lets pass functions of the role
 * itself, if that is no superuser, and immutable ones of superusers: those of PostgreSQL and of
 * extensions. These have no effect; query_to_xml(), which is volatile, would run any statement.
 * Type input, operator classes and languages have no such call: only a superuser can make those.
 *
 * The hook is silent in a security-restricted operation, where PostgreSQL works as the owner of an
 * index or a materialized view, and in event triggers, which only superusers can make.
 */
#include "pg.h"

using namespace snowflake;

namespace
{

Oid guarded_role = InvalidOid; /* invalid: no statement is guarded now */
int event_triggers = 0;        /* that run now, one in the other */
object_access_hook_type previous_access_hook = nullptr;
needs_fmgr_hook_type previous_needs_hook = nullptr;
fmgr_hook_type previous_function_hook = nullptr;
bool is_installed = false;

bool is_harmless(Oid function)
{
    const HeapTuple tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
    if (!HeapTupleIsValid(tuple))
        elog(ERROR, "cache lookup failed for function %u", function);
    const auto* row = reinterpret_cast<Form_pg_proc>(GETSTRUCT(tuple));
    /* PostgreSQL's own functions are of a superuser, who may be the guarded role. */
    const bool is_harmless = superuser_arg(row->proowner)
                                 ? row->provolatile == PROVOLATILE_IMMUTABLE
                                 : row->proowner == guarded_role;
    ReleaseSysCache(tuple);
    return is_harmless;
}

void check_access(ObjectAccessType access, Oid catalog, Oid object, int part, void* argument)
{
    if (previous_access_hook != nullptr)
        previous_access_hook(access, catalog, object, part, argument);
    if (access != OAT_FUNCTION_EXECUTE || !OidIsValid(guarded_role) || event_triggers > 0 ||
        GetUserId() != guarded_role || InSecurityRestrictedOperation() || is_harmless(object))
        return;
    ereport(ERROR,
            (errcode(ERRCODE_S_R_E_PROHIBITED_SQL_STATEMENT_ATTEMPTED),
             errmsg("function %s would run with the rights of role %s",
                    format_procedure_qualified(object),
                    quote_identifier(GetUserNameFromId(guarded_role, false))),
             errdetail("An expression of the shard calls it while an object is made. Another role "
                       "can have chosen it.")));
}

bool is_event_trigger(Oid function)
{
    return OidIsValid(guarded_role) && get_func_rettype(function) == EVENT_TRIGGEROID;
}

bool needs_hook(Oid function)
{
    return is_event_trigger(function) ||
           (previous_needs_hook != nullptr && previous_needs_hook(function));
}

/* It is called around each function that needs_hook() has named. */
void count_event_triggers(FmgrHookEventType event, FmgrInfo* function, Datum* state)
{
    if (is_event_trigger(function->fn_oid))
        event_triggers += event == FHET_START ? 1 : -1;
    if (previous_function_hook != nullptr)
        previous_function_hook(event, function, state);
}

/* In the first session that needs them, and for its rest: no preloaded library is needed. */
void install()
{
    if (is_installed)
        return;
    previous_access_hook = object_access_hook;
    object_access_hook = check_access;
    previous_needs_hook = needs_fmgr_hook;
    needs_fmgr_hook = needs_hook;
    previous_function_hook = fmgr_hook;
    fmgr_hook = count_event_triggers;
    is_installed = true;
}

} // namespace

extern "C" {

/* snowflake_internal.run_guarded(statements text) returns void */
PG_FUNCTION_INFO_V1(snowflake_run_guarded);
PGDLLEXPORT Datum snowflake_run_guarded(PG_FUNCTION_ARGS)
{
    const char* statements = text_to_cstring(PG_GETARG_TEXT_PP(0));
    SPIExecuteOptions options = {};
    options.dest = CreateDestReceiver(DestNone);
    install();
    const Oid before = guarded_role;
    const int event_triggers_before = event_triggers;
    PG_TRY();
    {
        SPI_connect();
        guarded_role = GetUserId();
        event_triggers = 0;
        const int result = SPI_execute_extended(statements, &options);
        if (result < 0)
            elog(ERROR, "SPI_execute_extended failed: %s", SPI_result_code_string(result));
        SPI_finish();
    }
    PG_FINALLY();
    {
        guarded_role = before;
        event_triggers = event_triggers_before;
    }
    PG_END_TRY();
    PG_RETURN_VOID();
}
}
