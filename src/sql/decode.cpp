/* SQL functions that read IDs, build them, and bound them by time: fetch, call, return. */
#include "errors.h"
#include "pg.h"
#include "rule/layout.h"
#include "rule/timestamp.h"
#include "sql/arguments.h"

using namespace snowflake;

namespace
{

[[noreturn]] void counter_out_of_range(std::int32_t counter)
{
    ereport(ERROR,
            (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE), errmsg("seq %d is out of range", counter),
             errdetail("An ID has %d bits for its counter: 0 to %d.", kCounterBits, kMaxCounter),
             errhint("Use seq %% %d.", kMaxCounter + 1)));
}

[[noreturn]] void timestamp_out_of_range(Age age, Epoch epoch)
{
    ereport(ERROR,
            (errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE), errmsg("timestamp out of range"),
             errdetail("The ID was made %lld ms after the epoch %lld.", errors::number(raw(age)),
                       errors::number(raw(epoch))),
             errhint("Give the epoch_ms with which the ID was made, in Unix milliseconds.")));
}

[[noreturn]] void infinite_time()
{
    ereport(ERROR,
            (errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
             errmsg("an ID cannot be made at an infinite time"),
             errhint("For the ends of a range use snowflake_min_id() and snowflake_max_id().")));
}

TimestampTz timestamp_of(Id id, Epoch epoch)
{
    std::int64_t timestamp = 0;
    if (!to_timestamp(time_at(age_of(id), epoch), &timestamp) || !IS_VALID_TIMESTAMP(timestamp))
        timestamp_out_of_range(age_of(id), epoch);
    return timestamp;
}

} // namespace

extern "C" {

/* snowflake_timestamp(id bigint [, epoch_ms bigint]) returns timestamptz */
PG_FUNCTION_INFO_V1(snowflake_timestamp);
PGDLLEXPORT Datum snowflake_timestamp(PG_FUNCTION_ARGS)
{
    PG_RETURN_TIMESTAMPTZ(timestamp_of(Id{PG_GETARG_INT64(0)}, epoch_argument(fcinfo, 1)));
}

/* snowflake_shard(id bigint) returns integer */
PG_FUNCTION_INFO_V1(snowflake_shard);
PGDLLEXPORT Datum snowflake_shard(PG_FUNCTION_ARGS)
{
    PG_RETURN_INT32(raw(shard_of(Id{PG_GETARG_INT64(0)})));
}

/* snowflake_seq(id bigint) returns integer */
PG_FUNCTION_INFO_V1(snowflake_seq);
PGDLLEXPORT Datum snowflake_seq(PG_FUNCTION_ARGS)
{
    PG_RETURN_INT32(raw(counter_of(Id{PG_GETARG_INT64(0)})));
}

/* snowflake_decode(id bigint [, epoch_ms bigint], OUT created_at, OUT shard, OUT seq) */
PG_FUNCTION_INFO_V1(snowflake_decode);
PGDLLEXPORT Datum snowflake_decode(PG_FUNCTION_ARGS)
{
    const Id id{PG_GETARG_INT64(0)};
    Datum values[] = {TimestampTzGetDatum(timestamp_of(id, epoch_argument(fcinfo, 1))),
                      Int32GetDatum(raw(shard_of(id))), Int32GetDatum(raw(counter_of(id)))};
    bool nulls[] = {false, false, false};
    PG_RETURN_DATUM(row_of(fcinfo, values, nulls));
}

/* snowflake_encode(created_at timestamptz, shard integer, seq integer [, epoch_ms bigint]) */
PG_FUNCTION_INFO_V1(snowflake_encode);
PGDLLEXPORT Datum snowflake_encode(PG_FUNCTION_ARGS)
{
    const TimestampTz created_at = PG_GETARG_TIMESTAMPTZ(0);
    const std::int32_t shard = PG_GETARG_INT32(1);
    const std::int32_t counter = PG_GETARG_INT32(2);
    const Epoch epoch = epoch_argument(fcinfo, 3);

    if (TIMESTAMP_NOT_FINITE(created_at))
        infinite_time();
    if (!is_valid_shard(shard))
        errors::shard_out_of_range(shard);
    if (!is_valid_counter(counter))
        counter_out_of_range(counter);

    const UnixMs time = floor_to_ms(created_at);
    const Age age = age_at(time, epoch);
    if (raw(age) < 0)
        errors::before_epoch(time, epoch);
    if (raw(age) > kMaxAge)
        errors::past_last_ms(time, epoch, time_at(Age{kMaxAge}, epoch));
    PG_RETURN_INT64(raw(make_id(age, Shard{shard}, Counter{counter})));
}

/* snowflake_min_id(ts timestamptz [, epoch_ms bigint]) returns bigint */
PG_FUNCTION_INFO_V1(snowflake_min_id);
PGDLLEXPORT Datum snowflake_min_id(PG_FUNCTION_ARGS)
{
    const UnixMs time = ceil_to_ms(PG_GETARG_TIMESTAMPTZ(0));
    PG_RETURN_INT64(raw(lowest_id(age_at(time, epoch_argument(fcinfo, 1)))));
}

/* snowflake_max_id(ts timestamptz [, epoch_ms bigint]) returns bigint */
PG_FUNCTION_INFO_V1(snowflake_max_id);
PGDLLEXPORT Datum snowflake_max_id(PG_FUNCTION_ARGS)
{
    const UnixMs time = floor_to_ms(PG_GETARG_TIMESTAMPTZ(0));
    PG_RETURN_INT64(raw(highest_id(age_at(time, epoch_argument(fcinfo, 1)))));
}

/* snowflake_between(id bigint, from_ts timestamptz, to_ts timestamptz) returns boolean */
PG_FUNCTION_INFO_V1(snowflake_between);
PGDLLEXPORT Datum snowflake_between(PG_FUNCTION_ARGS)
{
    const Id id{PG_GETARG_INT64(0)};
    const Id from = lowest_id(age_at(ceil_to_ms(PG_GETARG_TIMESTAMPTZ(1)), kInstagramEpoch));
    const Id to = lowest_id(age_at(ceil_to_ms(PG_GETARG_TIMESTAMPTZ(2)), kInstagramEpoch));
    PG_RETURN_BOOL(id >= from && id < to);
}
}
