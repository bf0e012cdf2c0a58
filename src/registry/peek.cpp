#include "registry/peek.h"

#include "registry/caches.h"
#include "registry/files.h"
#include "registry/index_end.h"

namespace snowflake::registry
{
namespace
{

/* The start of 2020: the extension is younger. */
constexpr Position kFirstPosition = first_of(UnixMs{1577836800000});

/*
 * Entries at the end of an index before the search gives up: of rows that are deleted, or not
 * visible yet, and IDs of other shards that replication brought.
 */
constexpr int kMaxEntries = 1000;

bool can_be_read(Relation relation)
{
    if (RELATION_IS_OTHER_TEMP(relation))
        return false;
    /* A standby has no file of an unlogged relation. */
    return relation->rd_rel->relpersistence != RELPERSISTENCE_UNLOGGED || !RecoveryInProgress();
}

/* nullptr: it is gone, or somebody holds it in ACCESS EXCLUSIVE mode. */
Relation open_without_waiting(Oid oid, char kind)
{
    if (get_rel_relkind(oid) != kind || !ConditionalLockRelationOid(oid, AccessShareLock))
        return nullptr;
    /* It may have been dropped before the lock was taken. */
    const Relation relation = try_relation_open(oid, NoLock);
    if (relation == nullptr) {
        UnlockRelationOid(oid, AccessShareLock);
        return nullptr;
    }
    if (can_be_read(relation))
        return relation;
    relation_close(relation, AccessShareLock);
    return nullptr;
}

/* The relation may be dropped meanwhile, which is an error in pg_class_aclcheck(). */
bool may_use(Oid relation, AclMode mode)
{
    bool is_missing = false;
    return pg_class_aclcheck_ext(relation, GetUserId(), mode, &is_missing) == ACLCHECK_OK &&
           !is_missing;
}

/* Whether SELECT of all rows would be permitted. */
bool may_read_column(Oid table, std::int32_t column)
{
    if (superuser())
        return true;
    bool is_missing = false;
    const bool may_read =
        may_use(table, ACL_SELECT) ||
        pg_attribute_aclcheck_ext(table, static_cast<AttrNumber>(column), GetUserId(), ACL_SELECT,
                                  &is_missing) == ACLCHECK_OK;
    if (!may_read || is_missing || check_enable_rls(table, InvalidOid, true) == RLS_ENABLED)
        return false;
    return DatumGetBool(DirectFunctionCall2(has_schema_privilege_id,
                                            ObjectIdGetDatum(get_rel_namespace(table)),
                                            CStringGetTextDatum("USAGE")));
}

/*
 * The largest visible value up to the maximum among those that count, if it is a wanted one. Most
 * columns have none: an entry of the index says so, and no page of the table is read.
 */
template <typename Counts, typename Wanted>
bool read_largest(Relation heap, Relation index, std::int64_t maximum, Counts counts,
                  Wanted is_wanted, std::int64_t* value)
{
    TupleTableSlot* slot = table_slot_create(heap, nullptr);
    const IndexScanDesc scan = pg::begin_index_scan(heap, index, GetActiveSnapshot(), 1);
    /* btree can return the key of an entry, so the table is read only for an entry that is
     * wanted. */
    scan->xs_want_itup = true;
    begin_at_end(scan, maximum);
    bool found = false;
    bool is_in_range = true;
    for (int i = 0; i < kMaxEntries && !found && is_in_range && next_entry(scan); ++i) {
        bool is_null = false;
        *value = integer_of(index_getattr(scan->xs_itup, 1, scan->xs_itupdesc, &is_null),
                            index->rd_opcintype[0]);
        if (!counts(*value))
            continue;
        is_in_range = is_wanted(*value);
        found = is_in_range && index_fetch_heap(scan, slot);
    }
    index_endscan(scan);
    ExecDropSingleTupleTableSlot(slot);
    return found;
}

template <typename Counts, typename Wanted>
bool find_largest(Oid table, std::int32_t column, std::int64_t maximum, Counts counts,
                  Wanted is_wanted, std::int64_t* value)
{
    count_looked_at(1);
    if (is_empty(table) || !may_read_column(table, column))
        return false;
    const Relation heap = open_without_waiting(table, RELKIND_RELATION);
    if (heap == nullptr)
        return false;
    /* REINDEX locks the index in ACCESS EXCLUSIVE mode, and the table in SHARE mode only. */
    const Relation index = open_without_waiting(index_beginning_with(table, column), RELKIND_INDEX);
    bool found = false;
    if (index != nullptr) {
        found =
            orders_integers(index) && read_largest(heap, index, maximum, counts, is_wanted, value);
        relation_close(index, AccessShareLock);
    }
    relation_close(heap, AccessShareLock);
    return found;
}

/* Finds the tuple as read_seq_tuple() of sequence.c does: the sequence's only row is the first of
 * the page. */
Stored stored_in(Buffer buffer)
{
    const Page page = BufferGetPage(buffer);
    const auto* tuple = reinterpret_cast<HeapTupleHeader>(
        PageGetItem(page, PageGetItemId(page, FirstOffsetNumber)));
    const auto* data = reinterpret_cast<const FormData_pg_sequence_data*>(
        reinterpret_cast<const char*>(tuple) + tuple->t_hoff);
    return {data->last_value, data->is_called, false};
}

/* The sequence is read after the ID, so that its position is not older than an ID of another
 * session. */
bool is_above(Id id, Oid sequence, Epoch epoch)
{
    Stored stored = {};
    return raw(id) >= 0 && peek_sequence(sequence, &stored) &&
           time_at(age_of(id), epoch) > ms_of(start_of(stored, epoch).position);
}

} // namespace

bool peek_sequence(Oid sequence, Stored* stored, XLogRecPtr* record)
{
    count_looked_at(1);
    if (!may_use(sequence, ACL_SELECT | ACL_USAGE))
        return false;
    const Relation relation = open_without_waiting(sequence, RELKIND_SEQUENCE);
    if (relation == nullptr)
        return false;
    const Buffer buffer = ReadBuffer(relation, 0);
    /* nextval() changes the tuple in place, under the exclusive lock. */
    LockBuffer(buffer, BUFFER_LOCK_SHARE);
    const bool is_sound = pg::is_sequence_page(BufferGetPage(buffer));
    if (is_sound)
        *stored = stored_in(buffer);
    if (is_sound && record != nullptr)
        *record =
            RelationNeedsWAL(relation) ? PageGetLSN(BufferGetPage(buffer)) : InvalidXLogRecPtr;
    UnlockReleaseBuffer(buffer);
    relation_close(relation, AccessShareLock); /* not at the end of the transaction: see peek.h */
    return is_sound;
}

bool find_id_above(Oid table, std::int32_t column, Shard shard, Oid sequence, Epoch epoch,
                   Id* largest)
{
    /* An ID of another shard is passed over; the first of the own shard that is not above the
     * sequence ends the search, because all further ones are smaller. */
    const auto counts = [&](std::int64_t value) {
        return value <= raw(kMaxPosition) || shard_of(Id{value}) == shard;
    };
    const auto is_wanted = [&](std::int64_t value) { return is_above(Id{value}, sequence, epoch); };
    std::int64_t value = 0;
    const bool found = find_largest(table, column, PG_INT64_MAX, counts, is_wanted, &value);
    *largest = Id{value};
    return found;
}

bool find_stored_position(Oid table, std::int32_t column, Shard shard, Position* largest)
{
    const auto counts = [](std::int64_t) { return true; };
    const auto is_wanted = [&](std::int64_t value) {
        return value >= raw(kFirstPosition) && shard_of(Id{value}) != shard;
    };
    std::int64_t value = 0;
    const bool found = find_largest(table, column, raw(kMaxPosition), counts, is_wanted, &value);
    *largest = Position{value};
    return found;
}

} // namespace snowflake::registry
