#include "stored.h"
#include "errors.h"

using namespace snowflake;

namespace
{

/* A role without the right must not stand in the queue of the lock, so call it before, too. 42P01,
 * where table_open() has an internal error. */
void require_select(Oid table)
{
    const Oid owner = errors::owner_of_table(table);
    const Oid reader = !superuser() && pg::may_become(owner) ? owner : GetUserId();
    const Oid schema = get_rel_namespace(table);
    const AclResult of_table = pg_class_aclcheck(table, reader, ACL_SELECT);
    if (!pg::has_schema_right(schema, ACL_USAGE))
        aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_SCHEMA, get_namespace_name(schema));
    if (of_table != ACLCHECK_OK &&
        pg_attribute_aclcheck_all(table, reader, ACL_SELECT, ACLMASK_ALL) != ACLCHECK_OK)
        aclcheck_error(of_table, OBJECT_TABLE, get_rel_name(table));
    errors::require_all_rows(table, reader);
}

} // namespace

Relation stored::open(Oid oid)
{
    require_select(oid);
    LockRelationOid(oid, AccessShareLock);
    require_select(oid);
    const Relation table = table_open(oid, NoLock);
    errors::require_ordinary_table(table);
    return table;
}

/* The snapshot is taken under the lock: in an earlier one, a table that was rewritten while this
 * waited for the lock would have no rows. In REPEATABLE READ it is that of the transaction. */
void stored::read(Relation table, void (*take)(TupleTableSlot* row, void* state), void* state)
{
    const MemoryContext of_row =
        AllocSetContextCreate(CurrentMemoryContext, "snowflake row", ALLOCSET_DEFAULT_SIZES);
    TupleTableSlot* slot = table_slot_create(table, nullptr);
    const Snapshot snapshot = RegisterSnapshot(GetTransactionSnapshot());
    const TableScanDesc scan = pg::begin_table_scan(table, snapshot);
    const MemoryContext before = MemoryContextSwitchTo(of_row);
    while (table_scan_getnextslot(scan, ForwardScanDirection, slot)) {
        CHECK_FOR_INTERRUPTS();
        slot_getallattrs(slot);
        take(slot, state);
        MemoryContextReset(of_row);
    }
    MemoryContextSwitchTo(before);
    table_endscan(scan);
    UnregisterSnapshot(snapshot);
    ExecDropSingleTupleTableSlot(slot);
    MemoryContextDelete(of_row);
}
