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

/* Whether SQL on an object of the role runs with the owner's rights. */
bool has_owners_rights(Oid role)
{
    return role != GetUserId() && !superuser_arg(role) && pg::may_become(role);
}

} // namespace

bool owner::is_callers(Oid schema)
{
    return !has_owners_rights(lock_schema(schema));
}
