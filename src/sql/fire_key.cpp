/* The SQL function that decides whether the triggers of a foreign key fire for replicated rows. */
#include "errors.h"
#include "pg.h"

using namespace snowflake;

namespace
{

/* The table with the key, and so the one on which an INSERT or UPDATE is checked. */
Oid referring_table(Oid key)
{
    const HeapTuple tuple = SearchSysCache1(CONSTROID, ObjectIdGetDatum(key));
    if (!HeapTupleIsValid(tuple))
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT),
                        errmsg("foreign key with OID %u does not exist", key)));
    const auto* row = reinterpret_cast<Form_pg_constraint>(GETSTRUCT(tuple));
    const Oid table = row->contype == CONSTRAINT_FOREIGN ? row->conrelid : InvalidOid;
    ReleaseSysCache(tuple);
    if (!OidIsValid(table))
        ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE),
                        errmsg("constraint with OID %u is no foreign key", key)));
    return table;
}

/* Changes the triggers of one table. The triggers of the other table, for its UPDATE and DELETE,
 * stay. So do triggers that are disabled. */
void set_firing(Oid key, Oid table, char from, char to)
{
    const Relation triggers = table_open(TriggerRelationId, RowExclusiveLock);
    ScanKeyData condition;
    ScanKeyInit(&condition, Anum_pg_trigger_tgconstraint, BTEqualStrategyNumber, F_OIDEQ,
                ObjectIdGetDatum(key));
    const SysScanDesc scan =
        systable_beginscan(triggers, TriggerConstraintIndexId, true, nullptr, 1, &condition);
    for (HeapTuple found = nullptr; (found = systable_getnext(scan)) != nullptr;) {
        const HeapTuple trigger = heap_copytuple(found);
        auto* row = reinterpret_cast<Form_pg_trigger>(GETSTRUCT(trigger));
        if (row->tgrelid == table && row->tgisinternal && row->tgenabled == from) {
            row->tgenabled = to;
            CatalogTupleUpdate(triggers, &trigger->t_self, trigger);
        }
    }
    systable_endscan(scan);
    table_close(triggers, RowExclusiveLock);
}

} // namespace

extern "C" {

/*
 * snowflake_internal.fire_key(key oid, always boolean) returns void
 *
 * ALTER TABLE ... ENABLE ALWAYS TRIGGER of an internal trigger takes a superuser. This function
 * takes the table's owner: no row is let through by it that was refused before, because it sets a
 * trigger that is enabled to ALWAYS, and one that is ALWAYS back. The locks are those of ALTER
 * TABLE.
 */
PG_FUNCTION_INFO_V1(snowflake_fire_key);
PGDLLEXPORT Datum snowflake_fire_key(PG_FUNCTION_ARGS)
{
    const Oid key = PG_GETARG_OID(0);
    const bool always = PG_GETARG_BOOL(1);
    const Oid table = referring_table(key);
    errors::require_owner(table); /* before it is locked, too */
    const Relation relation = table_open(table, ShareRowExclusiveLock);
    errors::require_owner(table);
    set_firing(key, referring_table(key), always ? TRIGGER_FIRES_ON_ORIGIN : TRIGGER_FIRES_ALWAYS,
               always ? TRIGGER_FIRES_ALWAYS : TRIGGER_FIRES_ON_ORIGIN);
    CacheInvalidateRelcache(relation);
    table_close(relation, NoLock);
    PG_RETURN_VOID();
}
}
