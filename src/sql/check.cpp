/* SQL functions that look at data, for snowflake_check(), the views and the making of shards. */
#include "pg.h"
#include "registry/column_end.h"
#include "registry/files.h"
#include "registry/other_ids.h"
#include "registry/peek.h"
#include "rule/bounds.h"
#include "sequence/session.h"
#include "sql/arguments.h"

using namespace snowflake;

extern "C" {

/* snowflake_internal.is_citus_copy(seqmin bigint, seqmax bigint) returns boolean */
PG_FUNCTION_INFO_V1(snowflake_is_citus_copy);
PGDLLEXPORT Datum snowflake_is_citus_copy(PG_FUNCTION_ARGS)
{
    PG_RETURN_BOOL(is_citus_copy(PG_GETARG_INT64(0), PG_GETARG_INT64(1)));
}

/* snowflake_internal.is_open(seqmin bigint, seqmax bigint) returns boolean */
PG_FUNCTION_INFO_V1(snowflake_is_open);
PGDLLEXPORT Datum snowflake_is_open(PG_FUNCTION_ARGS)
{
    const std::int64_t min = PG_GETARG_INT64(0);
    const std::int64_t max = PG_GETARG_INT64(1);
    PG_RETURN_BOOL(!is_closed(min, max) && !is_citus_copy(min, max));
}

/* snowflake_internal.require_open(seq regclass) returns void */
PG_FUNCTION_INFO_V1(snowflake_require_open);
PGDLLEXPORT Datum snowflake_require_open(PG_FUNCTION_ARGS)
{
    const Oid sequence = PG_GETARG_OID(0);
    const HeapTuple tuple = SearchSysCache1(SEQRELID, ObjectIdGetDatum(sequence));
    if (!HeapTupleIsValid(tuple))
        PG_RETURN_VOID(); /* no sequence: the caller's error */
    const FormData_pg_sequence form = *reinterpret_cast<Form_pg_sequence>(GETSTRUCT(tuple));
    ReleaseSysCache(tuple);
    if (is_closed(form.seqmin, form.seqmax) || is_citus_copy(form.seqmin, form.seqmax))
        session::cannot_hold_positions(sequence);
    Stored stored = {};
    if (registry::peek_sequence(sequence, &stored))
        session::refuse_if_ended(sequence, stored.value);
    PG_RETURN_VOID();
}

/* snowflake_internal.stored_value(seq oid, OUT last_value bigint, OUT is_called boolean) */
PG_FUNCTION_INFO_V1(snowflake_stored_value);
PGDLLEXPORT Datum snowflake_stored_value(PG_FUNCTION_ARGS)
{
    Stored stored = {};
    const bool found = registry::peek_sequence(PG_GETARG_OID(0), &stored);
    Datum values[] = {Int64GetDatum(stored.value), BoolGetDatum(stored.is_called)};
    bool nulls[] = {!found, !found};
    PG_RETURN_DATUM(row_of(fcinfo, values, nulls));
}

/*
 * snowflake_internal.file_size(tablespace oid, file oid) returns bigint
 *
 * pg_total_relation_size() opens each relation. An empty relation has no other forks, but after a
 * VACUUM that has truncated it: these 16 kB are left out, and so is that of an unlogged relation.
 */
PG_FUNCTION_INFO_V1(snowflake_file_size);
PGDLLEXPORT Datum snowflake_file_size(PG_FUNCTION_ARGS)
{
    const Oid tablespace = PG_GETARG_OID(0);
    const Oid file = PG_GETARG_OID(1);
    std::int64_t size = registry::size_of_fork(tablespace, file, MAIN_FORKNUM);
    if (size > 0)
        size += registry::size_of_fork(tablespace, file, FSM_FORKNUM) +
                registry::size_of_fork(tablespace, file, VISIBILITYMAP_FORKNUM);
    PG_RETURN_INT64(size);
}

/*
 * snowflake_internal.id_above(tbl oid, attnum integer, shard integer, seq oid, epoch_ms bigint)
 * returns bigint
 */
PG_FUNCTION_INFO_V1(snowflake_id_above);
PGDLLEXPORT Datum snowflake_id_above(PG_FUNCTION_ARGS)
{
    Id id = {};
    if (!registry::find_id_above(PG_GETARG_OID(0), PG_GETARG_INT32(1), Shard{PG_GETARG_INT32(2)},
                                 PG_GETARG_OID(3), Epoch{PG_GETARG_INT64(4)}, &id))
        PG_RETURN_NULL();
    PG_RETURN_INT64(raw(id));
}

/* snowflake_internal.stored_position(tbl oid, attnum integer, shard integer) returns bigint */
PG_FUNCTION_INFO_V1(snowflake_stored_position);
PGDLLEXPORT Datum snowflake_stored_position(PG_FUNCTION_ARGS)
{
    Position position = {};
    if (!registry::find_stored_position(PG_GETARG_OID(0), PG_GETARG_INT32(1),
                                        Shard{PG_GETARG_INT32(2)}, &position))
        PG_RETURN_NULL();
    PG_RETURN_INT64(raw(position));
}

/*
 * snowflake_internal.column_end(tbl oid, attnum integer, maximum bigint, OUT largest bigint,
 * OUT nulls bigint)
 */
PG_FUNCTION_INFO_V1(snowflake_column_end);
PGDLLEXPORT Datum snowflake_column_end(PG_FUNCTION_ARGS)
{
    const registry::ColumnEnd end =
        registry::read_column_end(PG_GETARG_OID(0), PG_GETARG_INT32(1), PG_GETARG_INT64(2));
    Datum values[] = {Int64GetDatum(end.largest), Int64GetDatum(end.nulls)};
    bool nulls[] = {!end.has_values, false};
    PG_RETURN_DATUM(row_of(fcinfo, values, nulls));
}

/*
 * snowflake_internal.other_ids(tbl oid, attnum integer, shard integer, sample integer,
 * OUT count bigint, OUT smallest bigint)
 */
PG_FUNCTION_INFO_V1(snowflake_other_ids);
PGDLLEXPORT Datum snowflake_other_ids(PG_FUNCTION_ARGS)
{
    const registry::OtherIds ids = registry::find_other_ids(
        PG_GETARG_OID(0), PG_GETARG_INT32(1), Shard{PG_GETARG_INT32(2)}, PG_GETARG_INT32(3));
    Datum values[] = {Int64GetDatum(ids.count), Int64GetDatum(ids.smallest)};
    bool nulls[] = {false, ids.count == 0};
    PG_RETURN_DATUM(row_of(fcinfo, values, nulls));
}
}
