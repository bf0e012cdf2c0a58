#include "registry/index_end.h"

namespace snowflake::registry
{
namespace
{

bool is_btree(Oid index)
{
    const HeapTuple tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(index));
    if (!HeapTupleIsValid(tuple))
        return false;
    const auto* form = reinterpret_cast<Form_pg_class>(GETSTRUCT(tuple));
    const bool is_btree = form->relkind == RELKIND_INDEX && form->relam == BTREE_AM_OID;
    ReleaseSysCache(tuple);
    return is_btree;
}

/* The check is that of get_relation_info(): a younger index may lack entries of HOT chains that a
 * snapshot sees. */
bool is_usable(const FormData_pg_index* form, HeapTuple tuple)
{
    return form->indisvalid &&
           (!form->indcheckxmin ||
            TransactionIdPrecedes(HeapTupleHeaderGetXmin(tuple->t_data), TransactionXmin));
}

/* Compares with an int8 also in an index of int4 or int2: the bound may be larger than the type. */
void begin(IndexScanDesc scan, StrategyNumber comparison, std::int64_t bound)
{
    /* integer_ops has the comparisons of all pairs of its three types. They have no collation. */
    const Oid compare =
        get_opfamily_member(INTEGER_BTREE_FAM_OID, scan->indexRelation->rd_opcintype[0], INT8OID,
                            static_cast<std::int16_t>(comparison));
    ScanKeyData key;
    ScanKeyEntryInitialize(&key, 0, 1, comparison, INT8OID, InvalidOid, get_opcode(compare),
                           Int64GetDatum(bound));
    index_rescan(scan, &key, 1, nullptr, 0);
}

/* The largest value of a DESC index is at its start. */
bool is_descending(IndexScanDesc scan)
{
    return (scan->indexRelation->rd_indoption[0] & INDOPTION_DESC) != 0;
}

bool next_tid(IndexScanDesc scan, ScanDirection direction)
{
    CHECK_FOR_INTERRUPTS();
    return index_getnext_tid(scan, direction) != nullptr;
}

} // namespace

/* indkey is 0 where the key is an expression, so columns before the first one match nothing. */
Oid index_beginning_with(Oid table, std::int32_t column)
{
    if (column < 1)
        return InvalidOid;
    ScanKeyData key;
    ScanKeyInit(&key, Anum_pg_index_indrelid, BTEqualStrategyNumber, F_OIDEQ,
                ObjectIdGetDatum(table));
    const Relation indexes = table_open(IndexRelationId, AccessShareLock);
    const SysScanDesc scan =
        systable_beginscan(indexes, IndexIndrelidIndexId, true, nullptr, 1, &key);
    Oid found = InvalidOid;
    HeapTuple tuple = nullptr;
    while (!OidIsValid(found) && HeapTupleIsValid(tuple = systable_getnext(scan))) {
        const auto* form = reinterpret_cast<Form_pg_index>(GETSTRUCT(tuple));
        /* A partial index may lack the largest value. */
        if (form->indkey.values[0] == column && is_usable(form, tuple) &&
            heap_attisnull(tuple, Anum_pg_index_indpred, nullptr) && is_btree(form->indexrelid))
            found = form->indexrelid;
    }
    systable_endscan(scan);
    table_close(indexes, AccessShareLock);
    return found;
}

/* Another operator class may order in another way, and run other functions. */
bool orders_integers(Relation index)
{
    return index->rd_opfamily[0] == INTEGER_BTREE_FAM_OID;
}

std::int64_t integer_of(Datum value, Oid type)
{
    switch (type) {
    case INT2OID:
        return DatumGetInt16(value);
    case INT4OID:
        return DatumGetInt32(value);
    default:
        return DatumGetInt64(value);
    }
}

void begin_at_end(IndexScanDesc scan, std::int64_t maximum)
{
    begin(scan, BTLessEqualStrategyNumber, maximum);
}

bool next_entry(IndexScanDesc scan)
{
    return next_tid(scan, is_descending(scan) ? ForwardScanDirection : BackwardScanDirection);
}

void begin_at_start(IndexScanDesc scan, std::int64_t minimum)
{
    begin(scan, BTGreaterEqualStrategyNumber, minimum);
}

bool next_entry_upwards(IndexScanDesc scan)
{
    return next_tid(scan, is_descending(scan) ? BackwardScanDirection : ForwardScanDirection);
}

} // namespace snowflake::registry
