#include "registry/peek.h"

#include "registry/index_end.h"

namespace snowflake::catalog
{
namespace
{

/* Of 2020: the extension is younger. */
constexpr Position kFirstPosition = first_of(UnixMs{1577836800000});

/* From commands/sequence.c, where both are private. */
constexpr std::uint32_t kSequenceMagic = 0x1717;
struct SequenceMagic {
    std::uint32_t magic;
};

/* Entries of rows that are deleted, or not visible yet, before the search gives up. */
constexpr int kMaxInvisible = 100;

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

bool may_use(Oid relation, AclMode mode)
{
    bool is_missing = false;
    return pg_class_aclcheck_ext(relation, GetUserId(), mode, &is_missing) == ACLCHECK_OK &&
           !is_missing;
}

/* As SELECT would check it, for all rows. */
bool may_read_column(Oid table, std::int32_t column)
{
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

/* The last entry up to the maximum, whatever has become of its row: the table is not needed. */
bool read_last_entry(Relation index, std::int64_t maximum, std::int64_t* value)
{
    const IndexScanDesc scan = pg::begin_scan_of_index(index, GetActiveSnapshot(), 1);
    scan->xs_want_itup = true;
    begin_at_end(scan, maximum);
    const bool found = next_entry(scan);
    if (found) {
        bool is_null = false;
        *value = integer_of(index_getattr(scan->xs_itup, 1, scan->xs_itupdesc, &is_null),
                            index->rd_opcintype[0]);
    }
    index_endscan(scan);
    return found;
}

/*
 * The largest value up to the maximum, if it is a wanted one. Most columns have none: the index
 * alone says so, and the table is not opened.
 */
template <typename Predicate>
bool find_largest(Oid table, std::int32_t column, std::int64_t maximum, Predicate is_wanted,
                  std::int64_t* value)
{
    if (!may_read_column(table, column))
        return false;
    const Relation index = open_without_waiting(index_beginning_with(table, column), RELKIND_INDEX);
    if (index == nullptr)
        return false;
    bool found =
        orders_integers(index) && read_last_entry(index, maximum, value) && is_wanted(*value);
    if (found) {
        const Relation heap = open_without_waiting(table, RELKIND_RELATION);
        found = heap != nullptr && read_last_row(heap, index, maximum, kMaxInvisible, value) &&
                is_wanted(*value);
        if (heap != nullptr)
            relation_close(heap, AccessShareLock);
    }
    relation_close(index, AccessShareLock);
    return found;
}

/* False for a corrupted page, such as one of zeros. */
bool is_sequence_page(Page page)
{
    return PageGetSpecialSize(page) == MAXALIGN(sizeof(SequenceMagic)) &&
           reinterpret_cast<const SequenceMagic*>(PageGetSpecialPointer(page))->magic ==
               kSequenceMagic;
}

Stored stored_in(Buffer buffer)
{
    const Page page = BufferGetPage(buffer);
    const auto* tuple = reinterpret_cast<HeapTupleHeader>(
        PageGetItem(page, PageGetItemId(page, FirstOffsetNumber)));
    const auto* data = reinterpret_cast<const FormData_pg_sequence_data*>(
        reinterpret_cast<const char*>(tuple) + tuple->t_hoff);
    return {data->last_value, data->is_called, false};
}

/* The sequence is read after the ID, so that it is not behind one of another session. */
bool is_above(Id id, Oid sequence, Epoch epoch)
{
    Stored stored = {};
    return raw(id) >= 0 && peek_sequence(sequence, &stored) &&
           time_at(age_of(id), epoch) > ms_of(start_of(stored, epoch).position);
}

} // namespace

bool peek_sequence(Oid sequence, Stored* stored)
{
    if (!may_use(sequence, ACL_SELECT | ACL_USAGE))
        return false;
    const Relation relation = open_without_waiting(sequence, RELKIND_SEQUENCE);
    if (relation == nullptr)
        return false;
    const Buffer buffer = ReadBuffer(relation, 0);
    LockBuffer(buffer, BUFFER_LOCK_SHARE);
    const bool is_sound = is_sequence_page(BufferGetPage(buffer));
    if (is_sound)
        *stored = stored_in(buffer);
    UnlockReleaseBuffer(buffer);
    relation_close(relation, AccessShareLock);
    return is_sound;
}

bool find_id_above(Oid table, std::int32_t column, Oid sequence, Epoch epoch, Id* largest)
{
    const auto is_wanted = [&](std::int64_t value) { return is_above(Id{value}, sequence, epoch); };
    std::int64_t value = 0;
    const bool found = find_largest(table, column, PG_INT64_MAX, is_wanted, &value);
    *largest = Id{value};
    return found;
}

bool find_stored_position(Oid table, std::int32_t column, Shard shard, Position* largest)
{
    const auto is_wanted = [&](std::int64_t value) {
        return value >= raw(kFirstPosition) && shard_of(Id{value}) != shard;
    };
    std::int64_t value = 0;
    const bool found = find_largest(table, column, raw(kMaxPosition), is_wanted, &value);
    *largest = Position{value};
    return found;
}

} // namespace snowflake::catalog
