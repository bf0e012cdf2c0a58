/*
 * Sequences that make no IDs on this server: their MINVALUE and MAXVALUE say so. Pure arithmetic.
 * SQL gives any two values: min < max first, so that no difference overflows.
 */
#pragma once

#include <cstdint>

namespace snowflake
{

/* snowflake-shard move leaves a shard that has left one value, which is drawn already. */
constexpr bool is_closed(std::int64_t min, std::int64_t max)
{
    return min < max && min == max - 1;
}

/*
 * Citus gives the copy of a bigint sequence on a worker of group g the bounds (g << 48) + 1 and
 * 2^48 above: AlterSequenceMinMax() in its worker_data_fetch_protocol.c. So values of nextval()
 * differ between nodes. Positions would not, because each copy follows the clock, which is in the
 * range of group 6 from 2022 to 2030.
 */
constexpr int kCitusGroupShift = 48;

constexpr bool is_citus_copy(std::int64_t min, std::int64_t max)
{
    constexpr std::int64_t kRange = std::int64_t{1} << kCitusGroupShift;
    return min > 1 && min % kRange == 1 && min < max && max - min == kRange;
}

static_assert(is_citus_copy(281474976710657, 562949953421313), "group 1");
static_assert(is_citus_copy(1688849860263937, 1970324836974593), "group 6");
static_assert(!is_citus_copy(1, INT64_MAX) && !is_citus_copy(INT64_MIN, INT64_MAX), "others");

} // namespace snowflake
