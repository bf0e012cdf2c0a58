/*
 * SQL functions that lock objects for the command until the transaction ends. The right is asked
 * for before, because a role without it must not stand in the queue of the lock, and again behind
 * it.
 */
#include "errors.h"
#include "pg.h"

using namespace snowflake;

namespace
{

void require_settable(Oid sequence)
{
    if (get_rel_relkind(sequence) != RELKIND_SEQUENCE ||
        pg_class_aclcheck(sequence, GetUserId(), ACL_UPDATE) != ACLCHECK_OK)
        ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
                        errmsg("relation %s is no sequence that this role may set",
                               errors::name_of(sequence))));
}

/* CREATE TABLE takes the same lock of a schema, to the end of its transaction. */
void require_lockable(Oid schema)
{
    if (!pg::may_become(errors::owner_of_schema(schema)) &&
        !pg::has_schema_right(schema, ACL_CREATE)) {
        const char* name = quote_identifier(get_namespace_name(schema));
        const char* role = errors::name_of_role(GetUserId());
        ereport(
            ERROR,
            (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
             errmsg("role %s may neither act as the owner of schema %s nor create objects in it",
                    role, name),
             errhint("GRANT CREATE ON SCHEMA %s TO %s;", name, role)));
    }
}

} // namespace

extern "C" {

/* snowflake_internal.lock_sequence(seq oid) returns void. LOCK TABLE takes no sequence, and all
 * that ALTER SEQUENCE locks without making a new file locks readers out, too. */
PG_FUNCTION_INFO_V1(snowflake_lock_sequence);
PGDLLEXPORT Datum snowflake_lock_sequence(PG_FUNCTION_ARGS)
{
    const Oid sequence = PG_GETARG_OID(0);
    require_settable(sequence);
    LockRelationOid(sequence, ShareRowExclusiveLock);
    require_settable(sequence);
    PG_RETURN_VOID();
}

/* snowflake_internal.lock_schema(schema regnamespace) returns void. DROP SCHEMA waits for the lock,
 * RENAME only in some releases (15.20 does), and OWNER TO never. */
PG_FUNCTION_INFO_V1(snowflake_lock_schema);
PGDLLEXPORT Datum snowflake_lock_schema(PG_FUNCTION_ARGS)
{
    const Oid schema = PG_GETARG_OID(0);
    require_lockable(schema);
    LockDatabaseObject(NamespaceRelationId, schema, 0, AccessShareLock);
    require_lockable(schema);
    PG_RETURN_VOID();
}
}
