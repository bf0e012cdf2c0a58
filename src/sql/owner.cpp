#include "owner.h"
#include "errors.h"
#include "registry/caches.h"

using namespace snowflake;

namespace
{

/* DROP SCHEMA waits for the lock, RENAME only in some releases (15.20 does), and OWNER TO never. */
Oid lock_schema(Oid schema)
{
    /* Most callers go on to look at the schema's tables. */
    registry::count_looked_at(20);
    LockDatabaseObject(NamespaceRelationId, schema, 0, AccessShareLock);
    const HeapTuple tuple = SearchSysCache1(NAMESPACEOID, ObjectIdGetDatum(schema));
    if (!HeapTupleIsValid(tuple))
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_SCHEMA),
                        errmsg("schema with OID %u does not exist", schema)));
    const Oid owner = pg::owner_of_schema(tuple);
    ReleaseSysCache(tuple);
    return owner;
}

/* It reads no catalogue: an error may be under way. */
void tell_role(void* argument)
{
    const auto* rights = static_cast<const owner::Rights*>(argument);
    if (geterrcode() == ERRCODE_INSUFFICIENT_PRIVILEGE)
        errcontext("The SQL works with the rights of role %s, which owns %s.", rights->role,
                   rights->object);
}

/* Policies hide no row from a superuser, and must not here without a word. So the owner reads all
 * of his tables, also if row security is forced on him (SECURITY_NOFORCE_RLS), and a policy of
 * another owner's table is an error (row_security). Other callers see the owner's rows; query and
 * run set row_security = off for them, too. */
void restrict_to(owner::Rights& rights, Oid role)
{
    const bool is_superuser = superuser_arg(rights.user);
    SetUserIdAndSecContext(role, rights.context | SECURITY_LOCAL_USERID_CHANGE |
                                     SECURITY_RESTRICTED_OPERATION |
                                     (is_superuser ? SECURITY_NOFORCE_RLS : 0));
    if (is_superuser)
        owner::set("row_security", "off");
}

void begin(owner::Rights& rights)
{
    rights = {};
    GetUserIdAndSecContext(&rights.user, &rights.context);
    rights.settings = NewGUCNestLevel();
    owner::set("search_path", "");
}

void become_owner(owner::Rights& rights, Oid role, const char* object)
{
    rights.role = errors::name_of_role(role);
    rights.object = object;
    rights.callback = {error_context_stack, tell_role, &rights};
    error_context_stack = &rights.callback;
    restrict_to(rights, role);
}

/* Whether SQL on an object of the role runs with the owner's rights. */
bool has_owners_rights(Oid role)
{
    return role != GetUserId() && !superuser_arg(role) && pg::may_become(role);
}

} // namespace

void owner::set(const char* setting, const char* value)
{
    set_config_option(setting, value, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
}

Oid owner::of_table(Oid table)
{
    const HeapTuple tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(table));
    if (!HeapTupleIsValid(tuple))
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE),
                        errmsg("table with OID %u does not exist", table)));
    const Oid owner = reinterpret_cast<Form_pg_class>(GETSTRUCT(tuple))->relowner;
    ReleaseSysCache(tuple);
    return owner;
}

Oid owner::of_function(Oid function)
{
    const HeapTuple tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
    if (!HeapTupleIsValid(tuple))
        elog(ERROR, "cache lookup failed for function %u", function);
    const Oid owner = reinterpret_cast<Form_pg_proc>(GETSTRUCT(tuple))->proowner;
    ReleaseSysCache(tuple);
    return owner;
}

bool owner::is_callers(Oid schema)
{
    return !has_owners_rights(lock_schema(schema));
}

void owner::become_role(Rights& rights, Oid role)
{
    if (!pg::may_become(role))
        ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
                        errmsg("role %s may not act as role %s", errors::name_of_role(GetUserId()),
                               errors::name_of_role(role))));
    begin(rights);
    become_owner(rights, role, "the objects");
}

void owner::become_again(const Rights& rights)
{
    if (rights.are_of_owner())
        error_context_stack = rights.callback.previous;
    AtEOXact_GUC(false, rights.settings);
    SetUserIdAndSecContext(rights.user, rights.context);
}
