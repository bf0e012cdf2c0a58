/*
 * The layout of an ID: its three fields, reading them, building an ID, and the ends of a
 * millisecond. Pure arithmetic.
 *
 *   bit 63                       23 22            10 9          0
 *       [ 41: ms since the epoch   ][ 13: shard     ][ 10: counter ]
 *
 * This is the layout that Instagram published in 2011, to the bit. IDs that its PL/pgSQL function
 * made decode here, and ours decode there.
 *
 * Reading takes the 41 time bits as unsigned, so that any bigint decodes. Building refuses an age
 * of 2^40 ms or more: such an ID would be negative and sort before all others.
 */
#pragma once

#include <cstdint>

namespace snowflake
{

/* A type for each meaning, so that the compiler catches a mix-up. */
enum class Id : std::int64_t {};
enum class UnixMs : std::int64_t {}; /* milliseconds since 1970-01-01 00:00 UTC */
enum class Epoch : std::int64_t {};  /* the UnixMs at which the age of an ID is 0 */
enum class Age : std::int64_t {};    /* milliseconds since an epoch */
enum class Shard : std::int32_t {};
enum class Counter : std::int32_t {};

constexpr int kCounterBits = 10;
constexpr int kShardBits = 13;
constexpr int kTimeBits = 41;
constexpr int kShardShift = kCounterBits;
constexpr int kTimeShift = kCounterBits + kShardBits;
static_assert(kTimeBits + kShardBits + kCounterBits == 64, "the three fields fill a bigint");

constexpr std::int32_t kMaxShard = (1 << kShardBits) - 1;
constexpr std::int32_t kMaxCounter = (1 << kCounterBits) - 1;
static_assert(kMaxShard == 8191 && kMaxCounter == 1023, "the published widths");

/* The last age with a sign bit of 0: 34.8 years after the epoch. */
constexpr std::int64_t kMaxAge = (std::int64_t{1} << (kTimeBits - 1)) - 1;
constexpr std::int64_t kMaxId = INT64_MAX;
static_assert(((kMaxAge << kTimeShift) | (std::int64_t{kMaxShard} << kShardShift) | kMaxCounter) ==
                  kMaxId,
              "the last ID that can be built is the largest bigint");

/* 2011-08-24 21:07:01.721 UTC, from the published function. */
constexpr Epoch kInstagramEpoch{1314220021721};

constexpr std::int64_t raw(Id v)
{
    return static_cast<std::int64_t>(v);
}
constexpr std::int64_t raw(UnixMs v)
{
    return static_cast<std::int64_t>(v);
}
constexpr std::int64_t raw(Epoch v)
{
    return static_cast<std::int64_t>(v);
}
constexpr std::int64_t raw(Age v)
{
    return static_cast<std::int64_t>(v);
}
constexpr std::int32_t raw(Shard v)
{
    return static_cast<std::int32_t>(v);
}
constexpr std::int32_t raw(Counter v)
{
    return static_cast<std::int32_t>(v);
}

/*
 * An epoch may be any bigint, so sums and differences of times can overflow. They saturate: both
 * ends of the type are far outside of everything that is accepted afterwards.
 */
constexpr std::int64_t saturating_add(std::int64_t a, std::int64_t b)
{
    std::int64_t sum = 0;
    if (!__builtin_add_overflow(a, b, &sum))
        return sum;
    return b > 0 ? INT64_MAX : INT64_MIN;
}

constexpr std::int64_t saturating_sub(std::int64_t a, std::int64_t b)
{
    std::int64_t difference = 0;
    if (!__builtin_sub_overflow(a, b, &difference))
        return difference;
    return b < 0 ? INT64_MAX : INT64_MIN;
}

/* The ends of the type stand for -infinity and infinity, with any epoch. */
constexpr Age age_at(UnixMs time, Epoch epoch)
{
    if (raw(time) == INT64_MIN || raw(time) == INT64_MAX)
        return Age{raw(time)};
    return Age{saturating_sub(raw(time), raw(epoch))};
}

constexpr UnixMs time_at(Age age, Epoch epoch)
{
    return UnixMs{saturating_add(raw(age), raw(epoch))};
}

constexpr bool is_valid_shard(std::int32_t shard)
{
    return shard >= 0 && shard <= kMaxShard;
}
constexpr bool is_valid_counter(std::int32_t counter)
{
    return counter >= 0 && counter <= kMaxCounter;
}

/* Reading: defined for every bigint. */
constexpr Age age_of(Id id)
{
    return Age{static_cast<std::int64_t>(static_cast<std::uint64_t>(raw(id)) >> kTimeShift)};
}

constexpr Shard shard_of(Id id)
{
    return Shard{static_cast<std::int32_t>((raw(id) >> kShardShift) & kMaxShard)};
}

constexpr Counter counter_of(Id id)
{
    return Counter{static_cast<std::int32_t>(raw(id) & kMaxCounter)};
}

/* Building: the caller has checked that 0 <= age <= kMaxAge and that shard and counter fit. */
constexpr Id make_id(Age age, Shard shard, Counter counter)
{
    const auto time = static_cast<std::uint64_t>(raw(age)) << kTimeShift;
    return Id{static_cast<std::int64_t>(time) | (std::int64_t{raw(shard)} << kShardShift) |
              raw(counter)};
}

/*
 * The lowest and the highest ID of a millisecond, over all shards, for index ranges:
 *   id >= lowest_id(age)   <=>  age_of(id) >= age
 *   id <= highest_id(age)  <=>  age_of(id) <= age      for every id >= 0 and every age,
 * with one exception: no bigint is after the largest ID, so an age past kMaxAge gives that ID.
 */
constexpr Id lowest_id(Age age)
{
    if (raw(age) <= 0)
        return Id{0};
    if (raw(age) > kMaxAge)
        return Id{kMaxId};
    return make_id(age, Shard{0}, Counter{0});
}

constexpr Id highest_id(Age age)
{
    if (raw(age) < 0)
        return Id{-1};
    if (raw(age) > kMaxAge)
        return Id{kMaxId};
    return make_id(age, Shard{kMaxShard}, Counter{kMaxCounter});
}

/* The published article's own example: user 31341 on one of 2000 shards, counter 5001. */
static_assert(raw(make_id(Age{1387263000}, Shard{31341 % 2000}, Counter{5001 % 1024})) ==
                  (std::int64_t{1387263000} << (64 - 41) | 1341 << (64 - 41 - 13) | (5001 % 1024)),
              "the published arithmetic");

} // namespace snowflake
