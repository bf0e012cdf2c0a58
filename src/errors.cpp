#include "errors.h"

#include "settings.h"
#include "timestamp.h"

namespace snowflake::errors
{
namespace
{

/* Schema-qualified and quoted, so that it can be pasted into a statement. */
const char* name_of(Oid relation)
{
    const char* name = get_rel_name(relation);
    const char* schema = get_namespace_name(get_rel_namespace(relation));
    if (name == nullptr || schema == nullptr) /* dropped meanwhile */
        return psprintf("with OID %u", relation);
    return quote_qualified_identifier(schema, name);
}

/* In UTC, as the layout is defined; the number itself where PostgreSQL has no such date. */
const char* date_of(UnixMs time)
{
    std::int64_t timestamp = 0;
    if (!to_timestamp(time, &timestamp) || !IS_VALID_TIMESTAMP(timestamp))
        return psprintf("Unix millisecond %lld", static_cast<long long>(raw(time)));
    pg_tm parts;
    fsec_t microseconds = 0;
    char text[MAXDATELEN + 1];
    if (timestamp2tm(timestamp, nullptr, &parts, &microseconds, nullptr, nullptr) != 0)
        return psprintf("Unix millisecond %lld", static_cast<long long>(raw(time)));
    EncodeDateTime(&parts, microseconds, false, 0, nullptr, USE_ISO_DATES, text);
    return psprintf("%s UTC", text);
}

long long number(std::int64_t value)
{
    return static_cast<long long>(value);
}

[[noreturn]] void clock_behind(Oid sequence, const PageResult& result)
{
    const char* name = name_of(sequence);
    ereport(
        ERROR,
        (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
         errmsg("clock is %lld ms behind sequence %s", number(result.decision.lead), name),
         errdetail(
             "The clock says %s, the sequence has reached %s; snowflake.max_drift is %lld ms.",
             date_of(result.now), date_of(ms_of(result.stored.position)),
             number(settings::max_drift())),
         errhint("Set the clock right. If it is right and the sequence is not, and no ID of that "
                 "time was ever stored: SELECT pg_catalog.setval(%s, 1); to go on from where the "
                 "sequence is: SET snowflake.max_drift = -1.",
                 quote_literal_cstr(name))));
}

} // namespace

void shard_out_of_range(std::int32_t shard)
{
    ereport(ERROR,
            (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE), errmsg("shard %d is out of range", shard),
             errdetail("An ID has %d bits for its shard: 0 to %d.", kShardBits, kMaxShard),
             errhint("Map a key to a shard with key %% shards, where shards is at most %d.",
                     kMaxShard + 1)));
}

void counter_out_of_range(std::int32_t counter)
{
    ereport(ERROR,
            (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE), errmsg("seq %d is out of range", counter),
             errdetail("An ID has %d bits for its counter: 0 to %d.", kCounterBits, kMaxCounter),
             errhint("Use seq %% %d.", kMaxCounter + 1)));
}

void not_an_id(Id id)
{
    ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
                    errmsg("%lld is not an ID: it is negative", number(raw(id))),
                    errhint("Give the largest ID that is in use, for example SELECT max(id).")));
}

void negative_count(std::int32_t count)
{
    ereport(ERROR,
            (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE), errmsg("cannot make %d IDs", count),
             errhint("The number of IDs is 0 or more.")));
}

void shard_unset()
{
    const char* database = get_database_name(MyDatabaseId);
    ereport(
        ERROR,
        (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE), errmsg("snowflake.shard is not set"),
         errdetail("snowflake_next_id() without arguments takes its shard from this setting."),
         errhint("ALTER DATABASE %s SET snowflake.shard = n, with n from 0 to %d, and reconnect; "
                 "or call snowflake_next_id(shard, sequence).",
                 database != nullptr ? quote_identifier(database) : "...", kMaxShard)));
}

void timestamp_out_of_range(Age age, Epoch epoch)
{
    ereport(ERROR,
            (errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE), errmsg("timestamp out of range"),
             errdetail("The ID was made %lld ms after the epoch %lld.", number(raw(age)),
                       number(raw(epoch))),
             errhint("Give the epoch_ms with which the ID was made, in Unix milliseconds.")));
}

void infinite_time()
{
    ereport(ERROR,
            (errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
             errmsg("an ID cannot be made at an infinite time"),
             errhint("For the ends of a range use snowflake_min_id() and snowflake_max_id().")));
}

void before_epoch(UnixMs time, Epoch epoch)
{
    ereport(ERROR, (errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
                    errmsg("%s is before the epoch", date_of(time)),
                    errdetail("The epoch is %s (epoch_ms %lld).", date_of(UnixMs{raw(epoch)}),
                              number(raw(epoch))),
                    errhint("Set the clock right, or give an epoch_ms in the past.")));
}

void past_last_ms(UnixMs time, Epoch epoch)
{
    ereport(ERROR,
            (errcode(ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED),
             errmsg("no IDs are left at %s", date_of(time)),
             errdetail("With the epoch %s (epoch_ms %lld) the last ID is of %s; one after it "
                       "would be negative.",
                       date_of(UnixMs{raw(epoch)}), number(raw(epoch)),
                       date_of(time_at(Age{kMaxAge}, epoch))),
             errhint("Give a later epoch_ms.")));
}

void nothing_follows(Id past, Epoch epoch)
{
    ereport(ERROR,
            (errcode(ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED),
             errmsg("no ID can follow %lld", number(raw(past))),
             errdetail("It is of the last millisecond that the epoch_ms %lld can express, %s.",
                       number(raw(epoch)), date_of(time_at(age_of(past), epoch))),
             errhint("Give the largest ID that was made with this epoch.")));
}

void shard_count_out_of_range(std::int32_t shards)
{
    ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
                    errmsg("%d shards are out of range", shards),
                    errdetail("An ID has %d bits for its shard: 1 to %d shards, numbered from 0.",
                              kShardBits, kMaxShard + 1)));
}

void shard_in_use(std::int32_t shard, Oid catalog, Oid object, const char* schema)
{
    const ObjectAddress address = {catalog, object, 0};
    ereport(ERROR,
            (errcode(ERRCODE_DUPLICATE_OBJECT),
             errmsg("shard %d is in use by schema %s", shard, quote_identifier(schema)),
             errdetail("IDs of shard %d are made by %s; two schemas would make the same ones.",
                       shard, getObjectDescription(&address, false)),
             errhint("Take a number that SELECT shard FROM snowflake_shards does not show.")));
}

void no_such_function(Oid function)
{
    ereport(ERROR, (errcode(ERRCODE_UNDEFINED_FUNCTION),
                    errmsg("function with OID %u does not exist", function)));
}

void unreadable_function(Oid function, const legacy::Reading& reading)
{
    const char* name = format_procedure_qualified(function);
    const char* place =
        reading.near.empty()
            ? "at the end"
            : psprintf("at \"%.*s\"", static_cast<int>(reading.near.size()), reading.near.data());
    ereport(
        ERROR,
        (errcode(ERRCODE_INVALID_FUNCTION_DEFINITION),
         errmsg("function %s cannot be read beyond doubt", name),
         errdetail("Line %d, %s: %s.", reading.line, place, reading.problem),
         errhint("Give what it uses by name: SELECT snowflake_adopt(%s, shard => ..., seq => ..., "
                 "epoch_ms => ...).",
                 quote_literal_cstr(name))));
}

void no_such_sequence(Oid relation)
{
    ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE),
                    errmsg("sequence with OID %u does not exist", relation),
                    errhint("Give a sequence by its name: 'schema.sequence'::regclass.")));
}

void no_default_sequence(Oid schema)
{
    const char* name = get_namespace_name(schema);
    ereport(
        ERROR,
        (errcode(ERRCODE_UNDEFINED_TABLE),
         errmsg("sequence %s does not exist", quote_qualified_identifier(name, "snowflake_id_seq")),
         errdetail("snowflake_next_id() without arguments draws from it."),
         errhint(
             "If it was moved or renamed, give it back its name and schema with ALTER SEQUENCE.")));
}

void not_a_sequence(Oid relation)
{
    ereport(ERROR,
            (errcode(ERRCODE_WRONG_OBJECT_TYPE), errmsg("%s is not a sequence", name_of(relation)),
             errhint("CREATE SEQUENCE makes one; snowflake_next_id(shard, 'schema.sequence') "
                     "uses it.")));
}

void permission_denied(Oid sequence)
{
    const char* name = name_of(sequence);
    ereport(ERROR,
            (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
             errmsg("permission denied for sequence %s", name),
             errhint("GRANT USAGE, UPDATE ON SEQUENCE %s TO %s. To make IDs USAGE is enough.", name,
                     quote_identifier(GetUserNameFromId(GetUserId(), false)))));
}

void cannot_hold_positions(Oid sequence)
{
    const HeapTuple tuple = SearchSysCache1(SEQRELID, ObjectIdGetDatum(sequence));
    if (!HeapTupleIsValid(tuple))
        no_such_sequence(sequence);
    const FormData_pg_sequence form = *reinterpret_cast<Form_pg_sequence>(GETSTRUCT(tuple));
    ReleaseSysCache(tuple);

    const char* name = name_of(sequence);
    ereport(
        ERROR,
        (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
         errmsg("sequence %s cannot hold a position", name),
         errdetail("It is %s with INCREMENT %lld and MAXVALUE %lld; a position is a bigint that "
                   "grows by 1024 each millisecond and by 1 each ID.",
                   format_type_be(form.seqtypid), number(form.seqincrement), number(form.seqmax)),
         errhint("ALTER SEQUENCE %s AS bigint INCREMENT BY 1 NO MAXVALUE;", name)));
}

void no_position(Oid sequence, const PageResult& result, Epoch epoch)
{
    const UnixMs wanted = ms_of(result.decision.first);
    switch (result.decision.verdict) {
    case Verdict::clock_behind:
        clock_behind(sequence, result);
    case Verdict::before_epoch:
        before_epoch(wanted, epoch);
    case Verdict::past_last_ms:
        past_last_ms(wanted, epoch);
    default:
        cannot_hold_positions(sequence);
    }
}

void warn_far_ahead(Oid sequence, std::int64_t lead, Position position)
{
    const char* name = name_of(sequence);
    ereport(
        WARNING,
        (errmsg("sequence %s is %lld ms ahead of the clock now", name, number(lead)),
         errdetail("It makes no IDs until the clock is within snowflake.max_drift (%lld ms) of %s.",
                   number(settings::max_drift()), date_of(ms_of(position))),
         errhint("If the ID given was none of this scheme and epoch, undo it: SELECT "
                 "pg_catalog.setval(%s, 1);",
                 quote_literal_cstr(name))));
}

} // namespace snowflake::errors
