#include "owner.h"
#include "errors.h"
#include "registry/caches.h"

using namespace snowflake;

namespace
{

struct Owned {
    Oid owner;
    const char* name; /* as SQL writes it */
};

/* The schema public belongs to pg_database_owner, a role that owns nothing else: its only member,
 * the owner of the database, stands for it. */
Oid database_owner()
{
    const HeapTuple tuple = SearchSysCache1(DATABASEOID, ObjectIdGetDatum(MyDatabaseId));
    if (!HeapTupleIsValid(tuple))
        elog(ERROR, "cache lookup failed for database %u", MyDatabaseId);
    const Oid owner = reinterpret_cast<Form_pg_database>(GETSTRUCT(tuple))->datdba;
    ReleaseSysCache(tuple);
    return owner;
}

/* DROP SCHEMA waits for the lock, RENAME only in some releases (15.20 does), and OWNER TO never:
 * the name and the owner are those of this moment, and the OID stays. */
Owned lock_schema(Oid schema)
{
    /* Most callers go on to look at the schema's tables. */
    registry::count_looked_at(20);
    LockDatabaseObject(NamespaceRelationId, schema, 0, AccessShareLock);
    const HeapTuple tuple = SearchSysCache1(NAMESPACEOID, ObjectIdGetDatum(schema));
    if (!HeapTupleIsValid(tuple))
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_SCHEMA),
                        errmsg("schema with OID %u does not exist", schema)));
    const auto* row = reinterpret_cast<Form_pg_namespace>(GETSTRUCT(tuple));
    const Owned owned = {row->nspowner == ROLE_PG_DATABASE_OWNER ? database_owner() : row->nspowner,
                         pstrdup(quote_identifier(NameStr(row->nspname)))};
    ReleaseSysCache(tuple);
    return owned;
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

void begin(owner::Rights& rights, const char* search_path)
{
    rights = {};
    GetUserIdAndSecContext(&rights.user, &rights.context);
    rights.settings = NewGUCNestLevel();
    owner::set("search_path", search_path);
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

char* text_of(int column)
{
    return SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, column);
}

/* The catalogue of this moment: a role that may create something there is a problem, also if
 * nothing is there yet. A trigger fires in no READ ONLY transaction, because it needs a write. */
void require_no_foreign_code(Oid schema)
{
    Oid types[] = {OIDOID, BOOLOID};
    Datum values[] = {ObjectIdGetDatum(schema), BoolGetDatum(!XactReadOnly)};
    SPI_connect();
    if (SPI_execute_with_args("SELECT * FROM snowflake_internal.foreign_code($1, $2)", 2, types,
                              values, nullptr, true, 1) != SPI_OK_SELECT ||
        SPI_processed != 1)
        elog(ERROR, "foreign_code() has failed");
    if (const char* problem = text_of(1); problem != nullptr)
        ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE), errmsg("%s", problem),
                        errhint("%s", text_of(2))));
    SPI_finish();
}

/* Whether SQL in the schema has the rights of its owner. */
bool decide(Oid schema, const Owned& owned)
{
    if (superuser() && superuser_arg(owned.owner))
        require_no_foreign_code(schema);
    return has_owners_rights(owned.owner);
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

void owner::become_in_schema(Rights& rights, Oid schema)
{
    const Owned owned = lock_schema(schema);
    const bool is_owners = decide(schema, owned);
    begin(rights, owned.name);
    if (is_owners)
        become_owner(rights, owned.owner, "the schema");
}

bool owner::is_callers(Oid schema)
{
    return !decide(schema, lock_schema(schema));
}

Oid owner::become_of_table(Rights& rights, Oid table)
{
    LockRelationOid(table, AccessShareLock);
    const Oid owner = of_table(table);
    begin(rights, "");
    if (has_owners_rights(owner))
        become_owner(rights, owner, "the table");
    return owner;
}

void owner::become_role(Rights& rights, Oid role)
{
    if (!pg::may_become(role))
        ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
                        errmsg("role %s may not act as role %s", errors::name_of_role(GetUserId()),
                               errors::name_of_role(role))));
    begin(rights, "");
    become_owner(rights, role, "the objects");
}

void owner::become_again(const Rights& rights)
{
    if (rights.are_of_owner())
        error_context_stack = rights.callback.previous;
    AtEOXact_GUC(false, rights.settings);
    SetUserIdAndSecContext(rights.user, rights.context);
}
