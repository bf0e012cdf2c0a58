/* SQL functions that say up to which ID no row can appear any more. */
#include "errors.h"
#include "pg.h"
#include "registry/peek.h"
#include "registry/uses.h"
#include "rule/bounds.h"
#include "sequence/clock.h"
#include "sequence/durability.h"
#include "settings.h"
#include "sql/arguments.h"

using namespace snowflake;

namespace
{

[[noreturn]] void snapshot_is_older()
{
    ereport(ERROR,
            (errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
             errmsg("snowflake_settled_id() cannot run in a %s transaction",
                    IsolationIsSerializable() ? "SERIALIZABLE" : "REPEATABLE READ"),
             errdetail("Its snapshot is older than the commits that the function waits for, so "
                       "their rows would not be seen."),
             errhint("Use READ COMMITTED: call it in a statement of its own, and read the rows in "
                     "the next one.")));
}

[[noreturn]] void is_standby()
{
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    errmsg("snowflake_settled_id() cannot run on a standby"),
                    errdetail("The transactions to wait for are those of the primary."),
                    errhint("On the primary: SELECT snowflake_settled_id(...), and then "
                            "pg_current_wal_insert_lsn(). On the standby, wait until "
                            "pg_last_wal_replay_lsn() is at least that, and read the rows.")));
}

[[noreturn]] void no_such_relation(Oid relation)
{
    ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE),
                    errmsg("relation with OID %u does not exist", relation)));
}

[[noreturn]] void not_a_sequence(Oid relation)
{
    ereport(ERROR,
            (errcode(ERRCODE_WRONG_OBJECT_TYPE),
             errmsg("%s is not a sequence", errors::name_of(relation)),
             errhint("For a table's column: snowflake_settled_id('schema.table', 'column').")));
}

[[noreturn]] void permission_denied(Oid sequence)
{
    ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
                    errmsg("permission denied for sequence %s", errors::name_of(sequence)),
                    errhint("GRANT SELECT ON SEQUENCE %s TO %s;", errors::name_of(sequence),
                            errors::name_of_role(GetUserId()))));
}

[[noreturn]] void makes_no_ids_here(Oid sequence, const char* detail)
{
    ereport(ERROR,
            (errcode(ERRCODE_READ_ONLY_SQL_TRANSACTION),
             errmsg("sequence %s makes no IDs here", errors::name_of(sequence)),
             errdetail("%s", detail),
             errhint("Read the shard where it is open: snowflake-shard map shows the server.")));
}

[[noreturn]] void cannot_be_read(Oid sequence)
{
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    errmsg("sequence %s cannot be read", errors::name_of(sequence)),
                    errdetail("It is temporary in another session, or its page is corrupted.")));
}

[[noreturn]] void no_such_column(Oid table, const char* column)
{
    ereport(ERROR,
            (errcode(ERRCODE_UNDEFINED_COLUMN),
             errmsg("table %s has no column %s", errors::name_of(table), quote_identifier(column)),
             errhint("Name the column of the IDs: snowflake_settled_id('%s', 'column').",
                     errors::name_of(table))));
}

[[noreturn]] void not_one_sequence(Oid table, const char* column, const char* detail)
{
    ereport(ERROR,
            (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
             errmsg("the sequence of column %s of table %s is not known", quote_identifier(column),
                    errors::name_of(table)),
             errdetail("%s", detail),
             errhint("Give shard and sequence: snowflake_settled_id(shard, 'schema.sequence').")));
}

/*
 * CREATE INDEX CONCURRENTLY waits with SHARE, too: it conflicts with the RowExclusiveLock of
 * draws, and this only asks who holds one. Readers, other consumers (ACCESS SHARE) and the draws
 * that come later are not waited for.
 */
void wait_for_draws(Oid sequence)
{
    LOCKTAG tag;
    SET_LOCKTAG_RELATION(tag, MyDatabaseId, sequence);
    WaitForLockers(tag, ShareLock, false);
}

/* Call it before the lock, because a role without the right must not stand in its queue, and after
 * it, so that none of this changes before the page is read. */
void check_sequence(Oid sequence)
{
    const char kind = get_rel_relkind(sequence);
    if (kind == '\0')
        no_such_relation(sequence);
    if (kind != RELKIND_SEQUENCE)
        not_a_sequence(sequence);
    if (pg_class_aclcheck(sequence, GetUserId(), ACL_SELECT | ACL_USAGE) != ACLCHECK_OK)
        permission_denied(sequence);
}

/* SQLSTATE 25006 as for a draw. Returns the last value of the sequence. */
std::int64_t check_open(Oid sequence)
{
    const HeapTuple tuple = SearchSysCache1(SEQRELID, ObjectIdGetDatum(sequence));
    if (!HeapTupleIsValid(tuple))
        elog(ERROR, "cache lookup failed for sequence %u", sequence);
    const auto* form = reinterpret_cast<Form_pg_sequence>(GETSTRUCT(tuple));
    const std::int64_t last = form->seqmax;
    const bool closed = is_closed(form->seqmin, last);
    const bool citus = is_citus_copy(form->seqmin, last);
    ReleaseSysCache(tuple);
    if (closed)
        makes_no_ids_here(sequence, "Its MINVALUE and MAXVALUE leave no value to be drawn, as "
                                    "snowflake-shard move sets them when a shard has left.");
    if (citus)
        makes_no_ids_here(sequence, "It is the copy of a sequence on a Citus worker.");
    return last;
}

void check_not_at_end(Oid sequence, const Stored& stored, std::int64_t last)
{
    if (stored.value >= last && stored.is_called)
        makes_no_ids_here(sequence, "It is at its end, as snowflake-shard split leaves it where a "
                                    "shard has left.");
}

/* 0 if the sequence has made no ID of this epoch. */
Id id_at(Position position, Epoch epoch, Shard shard)
{
    const Age age = age_at(ms_of(position), epoch);
    if (raw(age) < 0)
        return Id{0};
    if (raw(age) > kMaxAge)
        return make_id(Age{kMaxAge}, shard, Counter{kMaxCounter});
    return make_id(age, shard, counter_of(position));
}

/*
 * The position first, then the wait. A transaction that has drawn at or below this position held
 * RowExclusiveLock on the sequence before it drew, and holds it until it has ended; one that is
 * prepared holds it, too. So after the wait all of them have ended, and every later draw is above
 * the position. A transaction leaves the list of running ones before it releases its locks
 * (CommitTransaction()), so a snapshot that is taken after the wait sees its rows.
 *
 * The position may have no flushed record: a rolled-back setval() or snowflake_advance(), a draw of
 * an asynchronous commit. If a crash took the position back, later draws could be at or below it.
 * So the result is made durable as the ID of a draw is.
 *
 * ACCESS SHARE: RowExclusiveLock would make two consumers wait for each other. ALTER SEQUENCE does
 * not wait for it. So the bounds are read before the page: snowflake-shard sets the position of a
 * sequence before the bounds that open it are committed.
 */
Id settled_id(Oid sequence, Epoch epoch, Shard shard)
{
    if (RecoveryInProgress())
        is_standby();
    if (IsolationUsesXactSnapshot())
        snapshot_is_older();
    check_sequence(sequence);
    LockRelationOid(sequence, AccessShareLock);
    check_sequence(sequence);
    const std::int64_t last = check_open(sequence);
    Stored stored = {};
    XLogRecPtr record = InvalidXLogRecPtr;
    if (!registry::peek_sequence(sequence, &stored, &record))
        cannot_be_read(sequence);
    check_not_at_end(sequence, stored, last);
    wait_for_draws(sequence);
    const Start start = start_of(stored, epoch);
    make_durable(record, ms_of(start.position) > clock::now());
    /* An unused sequence may begin at any MINVALUE: the position before the first would wrap. */
    if (!start.is_used && raw(start.position) <= 0)
        return Id{0};
    return id_at(Position{raw(start.position) - (start.is_used ? 0 : 1)}, epoch, shard);
}

Shard shard_of(const registry::Call& call, const registry::NativeFunctions& natives, Oid table,
               const char* column)
{
    if (call.has_shard && is_valid_shard(call.shard))
        return Shard{call.shard};
    if (call.sequence != natives.default_sequence || settings::shard == settings::kShardUnset)
        not_one_sequence(table, column, "The shard in its DEFAULT is no constant from 0 to 8191.");
    return Shard{settings::shard};
}

/* The one call that the DEFAULT of the column makes. */
registry::Call call_of(const registry::NativeFunctions& natives, Oid table, const char* column)
{
    const AttrNumber number = get_attnum(table, column);
    if (number == InvalidAttrNumber)
        no_such_column(table, column);
    const List* uses = registry::uses_of(natives, {RelationRelationId, table, number});
    if (uses == NIL)
        not_one_sequence(table, column, "Its DEFAULT calls no function of this extension.");
    const registry::Call first = static_cast<const registry::Use*>(linitial(uses))->call;
    ListCell* cell = nullptr;
    foreach (cell, uses) {
        const registry::Call& call = static_cast<const registry::Use*>(lfirst(cell))->call;
        if (call.sequence != first.sequence || call.has_shard != first.has_shard ||
            call.shard != first.shard || call.epoch != first.epoch)
            not_one_sequence(table, column, "Its DEFAULT makes several calls that differ.");
    }
    if (!OidIsValid(first.sequence) || !first.has_epoch)
        not_one_sequence(table, column, "The sequence or the epoch in its DEFAULT is no constant.");
    return first;
}

} // namespace

extern "C" {

/* snowflake_settled_id(shard integer, seq regclass [, epoch_ms bigint]) returns bigint */
PG_FUNCTION_INFO_V1(snowflake_settled_id);
PGDLLEXPORT Datum snowflake_settled_id(PG_FUNCTION_ARGS)
{
    const std::int32_t shard = PG_GETARG_INT32(0);
    if (!is_valid_shard(shard))
        errors::shard_out_of_range(shard);
    const Epoch epoch = epoch_argument(fcinfo, 2);
    PG_RETURN_INT64(raw(settled_id(PG_GETARG_OID(1), epoch, Shard{shard})));
}

/* snowflake_settled_id(tab regclass, col name) returns bigint */
PG_FUNCTION_INFO_V1(snowflake_settled_id_of);
PGDLLEXPORT Datum snowflake_settled_id_of(PG_FUNCTION_ARGS)
{
    const Oid table = PG_GETARG_OID(0);
    const char* column = NameStr(*PG_GETARG_NAME(1));
    if (get_rel_relkind(table) == '\0')
        no_such_relation(table);
    const registry::NativeFunctions natives = registry::native_functions();
    const registry::Call call = call_of(natives, table, column);
    PG_RETURN_INT64(
        raw(settled_id(call.sequence, call.epoch, shard_of(call, natives, table, column))));
}
}
