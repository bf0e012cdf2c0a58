#include "registry/column_end.h"

#include "errors.h"
#include "registry/index_end.h"

namespace snowflake::registry
{
namespace
{

/* object_ownercheck() of 16 and later fails with XX000 for an OID that is no relation. */
Relation open_table(Oid table)
{
    const bool is_table = get_rel_relkind(table) == RELKIND_RELATION;
    /* This check comes before the lock, as in the callback of RangeVarGetRelidExtended(): a role
     * without the right must not stand in the queue of a lock. The pages of another session's
     * temporary table are in its local buffers. */
    if (is_table)
        errors::require_owner(table);
    const Relation relation = is_table ? try_relation_open(table, AccessShareLock) : nullptr;
    if (relation == nullptr || RELATION_IS_OTHER_TEMP(relation))
        ereport(ERROR,
                (errcode(ERRCODE_WRONG_OBJECT_TYPE),
                 errmsg("%s is no table that this session can read", errors::name_of(table))));
    errors::require_owner(table);
    return relation;
}

/* smallint, integer or bigint: also the type below a domain. */
Oid integer_type_of(Relation table, std::int32_t column)
{
    const TupleDesc row = RelationGetDescr(table);
    const bool exists =
        column >= 1 && column <= row->natts && !TupleDescAttr(row, column - 1)->attisdropped;
    const Oid type = exists ? getBaseType(TupleDescAttr(row, column - 1)->atttypid) : InvalidOid;
    if (type != INT2OID && type != INT4OID && type != INT8OID)
        ereport(ERROR,
                (errcode(ERRCODE_UNDEFINED_COLUMN), errmsg("table %s has no column %d of integers",
                                                           errors::name_of(table->rd_id), column)));
    return type;
}

/* The index's first column of the last visible row up to the maximum. */
bool read_last_row(Relation table, Relation index, std::int64_t maximum, std::int64_t* value)
{
    TupleTableSlot* slot = table_slot_create(table, nullptr);
    const IndexScanDesc scan = pg::begin_index_scan(table, index, GetActiveSnapshot(), 1);
    begin_at_end(scan, maximum);
    /* Entries of dead rows are skipped: an ID that was rolled back or deleted is not in the table.
     */
    bool found = false;
    while (!found && next_entry(scan))
        found = index_fetch_heap(scan, slot);
    if (found) {
        bool is_null = false;
        const Datum stored = slot_getattr(slot, index->rd_index->indkey.values[0], &is_null);
        *value = integer_of(stored, index->rd_opcintype[0]);
    }
    index_endscan(scan);
    ExecDropSingleTupleTableSlot(slot);
    return found;
}

/* NULLs are at one end of the index, so this reads no other entry. */
std::int64_t count_nulls(Relation table, Relation index)
{
    TupleTableSlot* slot = table_slot_create(table, nullptr);
    const IndexScanDesc scan = pg::begin_index_scan(table, index, GetActiveSnapshot(), 1);
    ScanKeyData key;
    /* ExecIndexBuildScanKeys() makes the key of IS NULL in the same way: no operator, and no
     * function. */
    ScanKeyEntryInitialize(&key, SK_ISNULL | SK_SEARCHNULL, 1, InvalidStrategy, InvalidOid,
                           InvalidOid, InvalidOid, Datum{0});
    index_rescan(scan, &key, 1, nullptr, 0);
    std::int64_t count = 0;
    while (next_entry(scan))
        count += index_fetch_heap(scan, slot) ? 1 : 0;
    index_endscan(scan);
    ExecDropSingleTupleTableSlot(slot);
    return count;
}

ColumnEnd read_index(Relation table, Relation index, std::int64_t maximum)
{
    ColumnEnd end = {};
    end.has_values = read_last_row(table, index, maximum, &end.largest);
    end.nulls = count_nulls(table, index);
    return end;
}

/* Scans the table and does not run max(): a query would be planned, and the planner runs code of
 * other roles. */
ColumnEnd read_all_rows(Relation table, AttrNumber column, Oid type, std::int64_t maximum)
{
    ColumnEnd end = {};
    TupleTableSlot* slot = table_slot_create(table, nullptr);
    const TableScanDesc scan = pg::begin_table_scan(table, GetActiveSnapshot());
    while (table_scan_getnextslot(scan, ForwardScanDirection, slot)) {
        CHECK_FOR_INTERRUPTS();
        bool is_null = false;
        const Datum stored = slot_getattr(slot, column, &is_null);
        const std::int64_t value = is_null ? 0 : integer_of(stored, type);
        if (is_null) {
            ++end.nulls;
        } else if (value <= maximum && (!end.has_values || value > end.largest)) {
            end.has_values = true;
            end.largest = value;
        }
    }
    table_endscan(scan);
    ExecDropSingleTupleTableSlot(slot);
    return end;
}

} // namespace

ColumnEnd read_column_end(Oid table, std::int32_t column, std::int64_t maximum)
{
    const Relation relation = open_table(table);
    const Oid type = integer_type_of(relation, column);
    const Oid index_oid = index_beginning_with(table, column);
    const Relation index = OidIsValid(index_oid) ? index_open(index_oid, AccessShareLock) : nullptr;
    const ColumnEnd end =
        index != nullptr && orders_integers(index)
            ? read_index(relation, index, maximum)
            : read_all_rows(relation, static_cast<AttrNumber>(column), type, maximum);
    if (index != nullptr)
        index_close(index, AccessShareLock);
    relation_close(relation, AccessShareLock);
    return end;
}

} // namespace snowflake::registry
