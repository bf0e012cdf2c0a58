/* SQL functions that make IDs, and the one that moves a sequence past an ID: fetch, call, return.
 */
#include "errors.h"
#include "pg.h"
#include "sequence/generator.h"
#include "settings.h"
#include "sql/arguments.h"

using namespace snowflake;

namespace
{

[[noreturn]] void not_an_id(Id id)
{
    ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
                    errmsg("%lld is not an ID: it is negative", errors::number(raw(id))),
                    errhint("Give the largest ID that is in use, for example SELECT max(id).")));
}

[[noreturn]] void negative_count(std::int32_t count)
{
    ereport(ERROR,
            (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE), errmsg("cannot make %d IDs", count),
             errhint("The number of IDs is 0 or more.")));
}

[[noreturn]] void shard_unset()
{
    const char* database = get_database_name(MyDatabaseId);
    ereport(
        ERROR,
        (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE), errmsg("snowflake.shard is not set"),
         errdetail("snowflake_next_id() without arguments takes its shard from this setting."),
         errhint("ALTER DATABASE %s SET snowflake.shard = n, with n from 0 to %d, and reconnect "
                 "(under Citus: ALTER SYSTEM on each node, with a number of its own); "
                 "or call snowflake_next_id(shard, sequence).",
                 database != nullptr ? quote_identifier(database) : "...", kMaxShard)));
}

[[noreturn]] void no_default_sequence(Oid schema)
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

Shard checked_shard(std::int32_t shard)
{
    if (!is_valid_shard(shard))
        errors::shard_out_of_range(shard);
    return Shard{shard};
}

/* Kept for one run of the executor: see CallSite. */
template <typename State>
State* state_of(FunctionCallInfo fcinfo, const char* function)
{
    auto* state = static_cast<State*>(fcinfo->flinfo->fn_extra);
    if (state == nullptr) {
        state = static_cast<State*>(MemoryContextAllocZero(fcinfo->flinfo->fn_mcxt, sizeof(State)));
        state->site.function = function;
        fcinfo->flinfo->fn_extra = state;
    }
    return state;
}

struct CallState {
    CallSite site;
};

struct DefaultCallState {
    CallSite site;
    Oid sequence;
};

/* A position that was drawn within the Limits of this epoch. */
Id make_id_at(Position position, Epoch epoch, Shard shard)
{
    const Age age = age_at(ms_of(position), epoch);
    Assert(raw(age) >= 0 && raw(age) <= kMaxAge);
    return make_id(age, shard, counter_of(position));
}

/* The sequence of snowflake_next_id() stands in the schema of the extension, wherever that is. */
Oid default_sequence(Oid function)
{
    const Oid schema = get_func_namespace(function);
    const Oid sequence = get_relname_relid("snowflake_id_seq", schema);
    if (!OidIsValid(sequence))
        no_default_sequence(schema);
    return sequence;
}

/*
 * The most that snowflake_next_ids() draws at once: the lock's cost is spread thin by then, and a
 * query that stops early leaves no more than a millisecond's worth unused.
 */
constexpr std::int64_t kSeriesBlock = kPositionsPerMs;

struct Series {
    CallSite site;
    Oid sequence;
    Shard shard;
    Epoch epoch;
    std::int64_t wanted; /* still to be drawn */
    PositionBlock block; /* drawn, and still to be returned */
};

} // namespace

extern "C" {

/* snowflake_next_id(shard integer, seq regclass [, epoch_ms bigint]) returns bigint */
PG_FUNCTION_INFO_V1(snowflake_next_id);
PGDLLEXPORT Datum snowflake_next_id(PG_FUNCTION_ARGS)
{
    const Shard shard = checked_shard(PG_GETARG_INT32(0));
    const Oid sequence = PG_GETARG_OID(1);
    const Epoch epoch = epoch_argument(fcinfo, 2);

    auto* state = state_of<CallState>(fcinfo, "snowflake_next_id()");
    const PositionBlock block = generator::draw(state->site, sequence, epoch, 1);
    PG_RETURN_INT64(raw(make_id_at(block.first, epoch, shard)));
}

/* snowflake_next_id() returns bigint */
PG_FUNCTION_INFO_V1(snowflake_next_id_default);
PGDLLEXPORT Datum snowflake_next_id_default(PG_FUNCTION_ARGS)
{
    if (settings::shard == settings::kShardUnset)
        shard_unset();
    auto* state = state_of<DefaultCallState>(fcinfo, "snowflake_next_id()");
    if (!OidIsValid(state->sequence))
        state->sequence = default_sequence(fcinfo->flinfo->fn_oid);

    const PositionBlock block = generator::draw(state->site, state->sequence, kInstagramEpoch, 1);
    PG_RETURN_INT64(raw(make_id_at(block.first, kInstagramEpoch, Shard{settings::shard})));
}

/*
 * snowflake_next_ids(shard integer, seq regclass, n integer [, epoch_ms bigint])
 * returns setof bigint
 *
 * A row at a time, so that a LIMIT draws no more than the block it stops in.
 */
PG_FUNCTION_INFO_V1(snowflake_next_ids);
PGDLLEXPORT Datum snowflake_next_ids(PG_FUNCTION_ARGS)
{
    if (SRF_IS_FIRSTCALL()) {
        const std::int32_t count = PG_GETARG_INT32(2);
        if (count < 0)
            negative_count(count);
        FuncCallContext* context = SRF_FIRSTCALL_INIT();
        auto* series = static_cast<Series*>(
            MemoryContextAllocZero(context->multi_call_memory_ctx, sizeof(Series)));
        series->site.function = "snowflake_next_ids()";
        series->shard = checked_shard(PG_GETARG_INT32(0));
        series->sequence = PG_GETARG_OID(1);
        series->epoch = epoch_argument(fcinfo, 3);
        series->wanted = count;
        context->user_fctx = series;
    }

    FuncCallContext* context = SRF_PERCALL_SETUP();
    auto* series = static_cast<Series*>(context->user_fctx);
    if (series->block.count == 0) {
        if (series->wanted == 0)
            SRF_RETURN_DONE(context);
        const std::int64_t wanted = series->wanted < kSeriesBlock ? series->wanted : kSeriesBlock;
        series->block = generator::draw(series->site, series->sequence, series->epoch, wanted);
        series->wanted -= series->block.count;
    }
    const Id id = make_id_at(series->block.first, series->epoch, series->shard);
    series->block.first = Position{raw(series->block.first) + 1};
    --series->block.count;
    SRF_RETURN_NEXT(context, Int64GetDatum(raw(id)));
}

/* snowflake_advance(seq regclass, past_id bigint [, epoch_ms bigint]) returns void */
PG_FUNCTION_INFO_V1(snowflake_advance);
PGDLLEXPORT Datum snowflake_advance(PG_FUNCTION_ARGS)
{
    const Oid sequence = PG_GETARG_OID(0);
    const Id past{PG_GETARG_INT64(1)};
    if (raw(past) < 0)
        not_an_id(past);

    auto* state = state_of<CallState>(fcinfo, "snowflake_advance()");
    generator::advance(state->site, sequence, past, epoch_argument(fcinfo, 2));
    PG_RETURN_VOID();
}
}
