/*
 * Conversion between PostgreSQL's timestamps (microseconds since 2000-01-01 UTC, and two values for
 * the infinities) and Unix milliseconds. Pure arithmetic: a TimestampTz is an int64 here.
 */
#pragma once

#include "rule/layout.h"

namespace snowflake
{

constexpr std::int64_t kUnixMsOf2000 = 946684800000;
constexpr std::int64_t kUsPerMs = 1000;
constexpr std::int64_t kMinusInfinity = INT64_MIN; /* DT_NOBEGIN */
constexpr std::int64_t kPlusInfinity = INT64_MAX;  /* DT_NOEND */

/* The last millisecond at or before a timestamp; the infinities become the ends of the type. */
constexpr UnixMs floor_to_ms(std::int64_t timestamp)
{
    if (timestamp == kMinusInfinity || timestamp == kPlusInfinity)
        return UnixMs{timestamp};
    const std::int64_t ms = timestamp / kUsPerMs - (timestamp % kUsPerMs < 0 ? 1 : 0);
    return UnixMs{ms + kUnixMsOf2000};
}

/* The first millisecond at or after a timestamp. */
constexpr UnixMs ceil_to_ms(std::int64_t timestamp)
{
    if (timestamp == kMinusInfinity || timestamp == kPlusInfinity)
        return UnixMs{timestamp};
    const std::int64_t ms = timestamp / kUsPerMs + (timestamp % kUsPerMs > 0 ? 1 : 0);
    return UnixMs{ms + kUnixMsOf2000};
}

/*
 * The timestamp of a millisecond; false where it has none (the caller also checks PostgreSQL's own
 * range, IS_VALID_TIMESTAMP).
 */
constexpr bool to_timestamp(UnixMs time, std::int64_t* timestamp)
{
    return !__builtin_mul_overflow(saturating_sub(raw(time), kUnixMsOf2000), kUsPerMs, timestamp);
}

static_assert(raw(floor_to_ms(0)) == kUnixMsOf2000 && raw(ceil_to_ms(0)) == kUnixMsOf2000, "2000");
static_assert(raw(floor_to_ms(-1)) == kUnixMsOf2000 - 1 && raw(ceil_to_ms(-1)) == kUnixMsOf2000,
              "rounding goes the same way before 2000");

} // namespace snowflake
