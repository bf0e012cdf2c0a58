/*
 * The SQL function that keeps the extension: a role that may drop it, such as the owner of the
 * database or of the extension's schema, could give the names of its functions to functions of its
 * own between two statements of a session that calls them.
 */
#include "pg.h"

using namespace snowflake;

namespace
{

/* Core holds session-level locks of this method within a command only, so ShutdownPostgres() does
 * not release them. This runs after it, and before the process leaves shared memory. */
void release_at_exit(int, Datum)
{
    LockReleaseAll(DEFAULT_LOCKMETHOD, true);
}

/* DROP EXTENSION, and each other DROP that includes it, takes AccessExclusiveLock of it first
 * (AcquireDeletionLock()). Does not wait: fast-path calls of libpq cannot be given up. */
bool lock_for_session(Oid extension)
{
    static bool is_registered = false;
    if (!is_registered)
        on_shmem_exit(release_at_exit, Datum{0});
    is_registered = true;
    LOCKTAG tag;
    SET_LOCKTAG_OBJECT(tag, MyDatabaseId, ExtensionRelationId, extension, 0);
    return LockAcquire(&tag, AccessShareLock, true, true) != LOCKACQUIRE_NOT_AVAIL;
}

/* Replay takes no lock of an extension. It takes those of the relations that DROP EXTENSION drops,
 * and cancels the transaction after max_standby_streaming_delay. It would wait for ever for a
 * session-level lock without a transaction. */
bool lock_on_standby(Oid extension, Oid relation)
{
    if (getExtensionOfObject(RelationRelationId, relation) != extension)
        ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
                        errmsg("relation with OID %u is not of the extension", relation)));
    return ConditionalLockRelationOid(relation, AccessShareLock);
}

} // namespace

extern "C" {

/*
 * snowflake_internal.keep_extension(relation oid) returns void
 *
 * The extension of this function, as its OID tells it, is still there when it is locked. It cannot
 * be another one: that would have another function.
 *
 *   42501   relation is none of the extension
 *   42704   the extension was dropped meanwhile
 *   55P03   it is being dropped
 */
PG_FUNCTION_INFO_V1(snowflake_keep_extension);
PGDLLEXPORT Datum snowflake_keep_extension(PG_FUNCTION_ARGS)
{
    const Oid function = fcinfo->flinfo->fn_oid;
    const Oid extension = getExtensionOfObject(ProcedureRelationId, function);
    const bool is_locked = RecoveryInProgress() ? lock_on_standby(extension, PG_GETARG_OID(0))
                                                : lock_for_session(extension);
    if (!is_locked)
        ereport(ERROR, (errcode(ERRCODE_LOCK_NOT_AVAILABLE),
                        errmsg("another session is dropping extension snowflake")));
    AcceptInvalidationMessages();
    if (!OidIsValid(extension) || getExtensionOfObject(ProcedureRelationId, function) != extension)
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT),
                        errmsg("extension snowflake was dropped meanwhile")));
    PG_RETURN_VOID();
}
}
