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
 * replace_guarded() also lets no function be made that was not there: CREATE OR REPLACE FUNCTION
 * makes the role of the caller the owner of a new function, with a text that another role wrote.
 *
 * The hook is silent in a security-restricted operation, where PostgreSQL works as the owner of an
 * index or a materialized view, and in event triggers, which only superusers can make.
 */
#include "guard.h"
#include "errors.h"
#include "owner.h"
#include "pg.h"

using namespace snowflake;

namespace
{

Oid guarded_role = InvalidOid; /* invalid: no statement is guarded now */
int event_triggers = 0;        /* that run now, one in the other */

/* The functions that the statements may replace. An empty List is a null pointer. */
struct Replaced {
    bool is_all_that_is_made;
    const List* functions;
};

Replaced replaced = {};
object_access_hook_type previous_access_hook = nullptr;
needs_fmgr_hook_type previous_needs_hook = nullptr;
fmgr_hook_type previous_function_hook = nullptr;
bool is_installed = false;

bool is_harmless(Oid function)
{
    const Oid owner = owner::of_function(function);
    /* PostgreSQL's own functions are of a superuser, who may be the guarded role. */
    return superuser_arg(owner) ? func_volatile(function) == PROVOLATILE_IMMUTABLE
                                : owner == guarded_role;
}

/* The hook comes when the row is written, for a function that is replaced, too (ProcedureCreate()).
 */
void check_made(ObjectAccessType access, Oid catalog, Oid object)
{
    if (access == OAT_POST_CREATE && catalog == ProcedureRelationId &&
        replaced.is_all_that_is_made && event_triggers == 0 &&
        !list_member_oid(replaced.functions, object))
        ereport(ERROR,
                (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                 errmsg("a function that is to be replaced has another name or schema now")));
}

void check_access(ObjectAccessType access, Oid catalog, Oid object, int part, void* argument)
{
    if (previous_access_hook != nullptr)
        previous_access_hook(access, catalog, object, part, argument);
    check_made(access, catalog, object);
    if (access != OAT_FUNCTION_EXECUTE || !OidIsValid(guarded_role) || event_triggers > 0 ||
        GetUserId() != guarded_role || InSecurityRestrictedOperation() || is_harmless(object))
        return;
    errors::runs_with_rights_of(object, guarded_role);
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

/* Installs the hooks in the first session that needs them, and for its rest: no preloaded library
 * is needed. */
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

void call_with(Replaced functions, void (*work)(void*), void* argument)
{
    install();
    const Oid before = guarded_role;
    const int event_triggers_before = event_triggers;
    const Replaced replaced_before = replaced;
    PG_TRY();
    {
        replaced = functions;
        guarded_role = GetUserId();
        event_triggers = 0;
        work(argument);
    }
    PG_FINALLY();
    {
        guarded_role = before;
        event_triggers = event_triggers_before;
        replaced = replaced_before;
    }
    PG_END_TRY();
}

/* The whole text is parsed before the first statement of it runs, so its own SET of
 * standard_conforming_strings would come too late: with off, a backslash in a constant of the shard
 * would end it elsewhere than pg_dump meant. Settings that the text changes end with it. */
void run(void* statements)
{
    SPIExecuteOptions options = {};
    options.dest = CreateDestReceiver(DestNone);
    SPI_connect();
    const int settings = NewGUCNestLevel();
    set_config_option("standard_conforming_strings", "on", PGC_USERSET, PGC_S_SESSION,
                      GUC_ACTION_SAVE, true, 0, false);
    const int result = SPI_execute_extended(static_cast<const char*>(statements), &options);
    if (result < 0)
        elog(ERROR, "SPI_execute_extended failed: %s", SPI_result_code_string(result));
    AtEOXact_GUC(false, settings);
    SPI_finish();
}

List* oids_of(ArrayType* array)
{
    Datum* values = nullptr;
    int count = 0;
    deconstruct_array(array, OIDOID, sizeof(Oid), true, TYPALIGN_INT, &values, nullptr, &count);
    List* oids = nullptr;
    for (int i = 0; i < count; i++)
        oids = lappend_oid(oids, DatumGetObjectId(values[i]));
    return oids;
}

/* DROP, RENAME, SET SCHEMA and OWNER TO wait for the lock until the end of the transaction. */
void lock_function(Oid function, Oid owner)
{
    LockDatabaseObject(ProcedureRelationId, function, 0, ShareUpdateExclusiveLock);
    const HeapTuple tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
    if (!HeapTupleIsValid(tuple) ||
        reinterpret_cast<Form_pg_proc>(GETSTRUCT(tuple))->proowner != owner)
        ereport(ERROR,
                (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                 errmsg("the function with OID %u is gone, or belongs to another role than before",
                        function)));
    ReleaseSysCache(tuple);
}

} // namespace

void guard::call(void (*work)(void*), void* argument)
{
    call_with({}, work, argument);
}

extern "C" {

/* snowflake_internal.run_guarded(statements text) returns void */
PG_FUNCTION_INFO_V1(snowflake_run_guarded);
PGDLLEXPORT Datum snowflake_run_guarded(PG_FUNCTION_ARGS)
{
    call_with({}, run, text_to_cstring(PG_GETARG_TEXT_PP(0)));
    PG_RETURN_VOID();
}

/* snowflake_internal.replace_guarded(statements text, functions oid[], owners oid[]) returns void.
 * 55000 if one of the functions is gone, or has another owner; 2202E for arrays of two lengths. */
PG_FUNCTION_INFO_V1(snowflake_replace_guarded);
PGDLLEXPORT Datum snowflake_replace_guarded(PG_FUNCTION_ARGS)
{
    const List* functions = oids_of(PG_GETARG_ARRAYTYPE_P(1));
    const List* owners = oids_of(PG_GETARG_ARRAYTYPE_P(2));
    if (list_length(functions) != list_length(owners))
        ereport(ERROR,
                (errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR), errmsg("each function needs one owner")));
    ListCell* function = nullptr;
    ListCell* owner = nullptr;
    forboth(function, functions, owner, owners)
        lock_function(lfirst_oid(function), lfirst_oid(owner));
    call_with({true, functions}, run, text_to_cstring(PG_GETARG_TEXT_PP(0)));
    PG_RETURN_VOID();
}
}
