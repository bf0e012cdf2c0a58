#include "registry/other_ids.h"

#include "errors.h"
#include "registry/caches.h"
#include "registry/files.h"
#include "registry/index_end.h"
#include "rule/position.h"

namespace snowflake::registry
{
namespace
{

/* 2^53: a smaller number can be a position, or the number of a row from before the IDs. */
constexpr std::int64_t kFirstId = raw(kMaxPosition) + 1;
/* Pages. To read all rows of a smaller table costs less than to open an index of it. */
constexpr BlockNumber kSmallTable = 32;
constexpr int kRowsOfEnd = 100; /* a sample can miss a few rows; those of today are at the end */

/* Checks SELECT for all rows: with row_security = off a policy is an error. Call it before the
 * table is locked, too: a role without the privilege must not stand in the queue of a lock. */
void require_select(Oid table, std::int32_t column)
{
    const Oid schema = get_rel_namespace(table);
    const AclResult of_table = pg_class_aclcheck(table, GetUserId(), ACL_SELECT);
    if (!pg::has_schema_right(schema, ACL_USAGE))
        aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_SCHEMA, get_namespace_name(schema));
    if (of_table != ACLCHECK_OK && pg_attribute_aclcheck(table, static_cast<AttrNumber>(column),
                                                         GetUserId(), ACL_SELECT) != ACLCHECK_OK)
        aclcheck_error(of_table, OBJECT_TABLE, get_rel_name(table));
    errors::require_all_rows(table);
}

bool can_be_read(Relation relation)
{
    if (relation->rd_rel->relkind != RELKIND_RELATION || RELATION_IS_OTHER_TEMP(relation))
        return false;
    /* A standby has no file of an unlogged relation. */
    return relation->rd_rel->relpersistence != RELPERSISTENCE_UNLOGGED || !RecoveryInProgress();
}

Relation open_table(Oid table)
{
    const Relation relation = try_relation_open(table, AccessShareLock);
    if (relation == nullptr || !can_be_read(relation))
        ereport(ERROR,
                (errcode(ERRCODE_WRONG_OBJECT_TYPE),
                 errmsg("%s is no table that this session can read", errors::name_of(table))));
    return relation;
}

/* The type bigint, or a domain over it. */
void require_bigint(Relation table, std::int32_t column)
{
    const TupleDesc row = RelationGetDescr(table);
    if (column < 1 || column > row->natts || TupleDescAttr(row, column - 1)->attisdropped ||
        getBaseType(TupleDescAttr(row, column - 1)->atttypid) != INT8OID)
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_COLUMN),
                        errmsg("table %s has no column %d of type bigint",
                               errors::name_of(table->rd_id), column)));
}

/* 0, which is no ID, for NULL. */
std::int64_t number_in(TupleTableSlot* slot, AttrNumber column)
{
    bool is_null = false;
    const Datum stored = slot_getattr(slot, column, &is_null);
    return is_null ? 0 : DatumGetInt64(stored);
}

void add(OtherIds* ids, std::int64_t number, Shard shard)
{
    if (number < kFirstId || shard_of(Id{number}) == shard)
        return;
    ids->smallest = ids->count == 0 ? number : Min(ids->smallest, number);
    ++ids->count;
}

OtherIds read_all_rows(Relation table, AttrNumber column, Shard shard)
{
    OtherIds ids = {};
    TupleTableSlot* slot = table_slot_create(table, nullptr);
    const TableScanDesc scan = pg::begin_table_scan(table, GetActiveSnapshot());
    while (table_scan_getnextslot(scan, ForwardScanDirection, slot)) {
        CHECK_FOR_INTERRUPTS();
        add(&ids, number_in(slot, column), shard);
    }
    table_endscan(scan);
    ExecDropSingleTupleTableSlot(slot);
    return ids;
}

/* TABLESAMPLE SYSTEM of the percentage that is about as many rows, as nodeSamplescan.c begins it.
 * The number of rows is estimated as the planner does, so a table without statistics has one, too.
 */
SampleScanState* begin_sample(Relation table, std::int32_t rows)
{
    BlockNumber pages = 0;
    double all_rows = 0;
    double all_visible = 0;
    table_relation_estimate_size(table, nullptr, &pages, &all_rows, &all_visible);
    const double percent = all_rows <= rows ? 100 : 100.0 * rows / all_rows;
    Datum parameters[] = {Float4GetDatum(static_cast<float>(percent))};

    SampleScanState* state = makeNode(SampleScanState);
    state->tsmroutine = GetTsmRoutine(F_SYSTEM);
    /* Without REPEATABLE each call takes other pages, so verify that is run again may find more. */
    state->tsmroutine->InitSampleScan(state, 0);
    state->tsmroutine->BeginSampleScan(state, parameters, 1, pg_prng_uint32(&pg_global_prng_state));
    return state;
}

OtherIds read_sample(Relation table, AttrNumber column, Shard shard, std::int32_t rows)
{
    OtherIds ids = {};
    TupleTableSlot* slot = table_slot_create(table, nullptr);
    SampleScanState* state = begin_sample(table, rows);
    const TableScanDesc scan = pg::begin_sample_scan(table, GetActiveSnapshot(), state);
    while (table_scan_sample_next_block(scan, state)) {
        CHECK_FOR_INTERRUPTS();
        while (table_scan_sample_next_tuple(scan, state, slot))
            add(&ids, number_in(slot, column), shard);
    }
    table_endscan(scan);
    ExecDropSingleTupleTableSlot(slot);
    return ids;
}

bool next_row(IndexScanDesc scan, TupleTableSlot* slot, bool (*next)(IndexScanDesc),
              std::int64_t* number)
{
    while (next(scan))
        if (index_fetch_heap(scan, slot)) {
            *number = number_in(slot, scan->indexRelation->rd_index->indkey.values[0]);
            return true;
        }
    return false;
}

/* The scan from the largest ID down stops where the rows from the smallest up ended. */
OtherIds read_ends(Relation table, Relation index, Shard shard)
{
    OtherIds ids = {};
    TupleTableSlot* slot = table_slot_create(table, nullptr);
    const IndexScanDesc scan = pg::begin_index_scan(table, index, GetActiveSnapshot(), 1);
    std::int64_t number = kFirstId - 1;
    begin_at_start(scan, kFirstId);
    for (int i = 0; i < kRowsOfEnd && next_row(scan, slot, next_entry_upwards, &number); ++i)
        add(&ids, number, shard);
    const std::int64_t added = number;
    begin_at_end(scan, PG_INT64_MAX);
    for (int i = 0; i < kRowsOfEnd && next_row(scan, slot, next_entry, &number) && number > added;
         ++i)
        add(&ids, number, shard);
    index_endscan(scan);
    ExecDropSingleTupleTableSlot(slot);
    return ids;
}

/* The larger of two counts of the same table: a row can be in both, so they are not added. */
OtherIds larger(OtherIds a, OtherIds b)
{
    if (a.count == 0 || b.count == 0)
        return a.count == 0 ? b : a;
    return {Max(a.count, b.count), Min(a.smallest, b.smallest)};
}

} // namespace

OtherIds find_other_ids(Oid table, std::int32_t column, Shard shard, std::int32_t sample)
{
    count_looked_at(1);
    require_select(table, column);
    if (is_empty(table))
        return {};
    const Relation relation = open_table(table);
    require_select(table, column);
    require_bigint(relation, column);
    const auto attribute = static_cast<AttrNumber>(column);
    /* The ends of an index are read beside a sample only: a read of all rows has seen them. */
    const bool reads_all = sample <= 0 || RelationGetNumberOfBlocks(relation) <= kSmallTable;
    OtherIds ids = reads_all ? read_all_rows(relation, attribute, shard)
                             : read_sample(relation, attribute, shard, sample);
    const Oid index_oid = reads_all ? InvalidOid : index_beginning_with(table, column);
    if (OidIsValid(index_oid)) {
        const Relation index = index_open(index_oid, AccessShareLock);
        if (orders_integers(index))
            ids = larger(ids, read_ends(relation, index, shard));
        index_close(index, AccessShareLock);
    }
    relation_close(relation, AccessShareLock);
    return ids;
}

} // namespace snowflake::registry
