/*
 * What we keep in a sequence's log_cnt: the lease that the last WAL record left, and whether core's
 * nextval() was at work on the sequence lately (why: beside_core.h). Pure arithmetic.
 *
 *   log_cnt = -(tag:37 << 25 | last_core_use:5 << 20 | positions_left:20) - 1      always negative
 *
 * A lease is worth something only while the record that promised it is the last change of this very
 * page. So it carries the record's LSN (its low 40 bits, of which the lowest 3 are always zero) as
 * a tag and counts only while the page's own LSN still matches. A page that was copied (SET LOGGED,
 * wal_level=minimal, CREATE DATABASE ... TEMPLATE) has another LSN, and no lease. Core writes
 * counts
 * >= 0, which are no lease of ours; and it takes a negative count as "log at once", so nextval()
 * and setval() may be mixed in at any time.
 *
 * The note of core's use is a minute modulo 31. It stands on the page because no session can know
 * what the others call, and lasts kCoreUseMinutes after core's last hand on the sequence.
 */
#pragma once

#include "position.h"

namespace snowflake
{

constexpr std::int64_t kLeaseMs = 1000;
constexpr std::int64_t kLeasePositions = kLeaseMs * kPositionsPerMs;

constexpr int kLeftBits = 20;
constexpr int kCoreUseBits = 5;
constexpr int kTagBits = 37;
constexpr int kLsnAlignmentBits = 3;
static_assert(kLeasePositions < (std::int64_t{1} << kLeftBits), "a whole lease fits");
static_assert(kTagBits + kCoreUseBits + kLeftBits <= 62, "the count stays negative");

/* A minute modulo 31, plus 1; 0 is "not seen". */
enum class CoreUse : std::int32_t { none = 0 };
constexpr std::int64_t kCoreUseCycle = (1 << kCoreUseBits) - 1;
constexpr std::int64_t kCoreUseMinutes = 20;
constexpr std::int64_t kClockSlackMinutes = 3;
static_assert(kCoreUseMinutes + kClockSlackMinutes < kCoreUseCycle, "ages can be told apart");

constexpr std::int64_t minute_in_cycle(UnixMs now)
{
    const std::int64_t minute = raw(now) / 60000 % kCoreUseCycle;
    return minute < 0 ? minute + kCoreUseCycle : minute;
}

constexpr CoreUse core_use_at(UnixMs now)
{
    return CoreUse{static_cast<std::int32_t>(minute_in_cycle(now) + 1)};
}

/*
 * A use that is not over yet, or none. The last minutes of the cycle count as recent, for a clock
 * that was set back a little. A sequence at rest for longer than a cycle may keep the note for one
 * more: that costs a burst, never an ID.
 */
constexpr CoreUse recent_only(CoreUse use, UnixMs now)
{
    if (use == CoreUse::none)
        return use;
    const std::int64_t since = minute_in_cycle(now) - (static_cast<std::int64_t>(use) - 1);
    const std::int64_t age = since < 0 ? since + kCoreUseCycle : since;
    return age < kCoreUseMinutes || age >= kCoreUseCycle - kClockSlackMinutes ? use : CoreUse::none;
}

constexpr std::uint64_t tag_of(std::uint64_t lsn)
{
    return (lsn >> kLsnAlignmentBits) & ((std::uint64_t{1} << kTagBits) - 1);
}

constexpr std::int64_t encode_log_count(std::uint64_t lsn, std::int64_t positions_left, CoreUse use)
{
    const std::uint64_t fields = tag_of(lsn) << (kCoreUseBits + kLeftBits) |
                                 static_cast<std::uint64_t>(use) << kLeftBits |
                                 static_cast<std::uint64_t>(positions_left);
    return -static_cast<std::int64_t>(fields) - 1;
}

/* For pages and records without a lease of their own: nothing left under any LSN. */
constexpr std::int64_t encode_no_lease(CoreUse use)
{
    return encode_log_count(0, 0, use);
}

constexpr std::uint64_t fields_of(std::int64_t log_count)
{
    return static_cast<std::uint64_t>(-(log_count + 1));
}

/* How many positions the page may still move before the next record. */
constexpr std::int64_t positions_left(std::int64_t log_count, std::uint64_t page_lsn)
{
    if (log_count >= 0)
        return 0;
    const std::uint64_t fields = fields_of(log_count);
    if (fields >> (kCoreUseBits + kLeftBits) != tag_of(page_lsn))
        return 0;
    return static_cast<std::int64_t>(fields & ((std::uint64_t{1} << kLeftBits) - 1));
}

/*
 * Whether core drew from the sequence lately. A count >= 0 on a sequence that was called is core's
 * own hand: nextval(), setval(), or a crash after one of them. Our own records carry a negative
 * one.
 */
constexpr CoreUse core_use_of(std::int64_t log_count, bool is_called, UnixMs now)
{
    if (log_count >= 0)
        return is_called ? core_use_at(now) : CoreUse::none;
    const std::uint64_t bits =
        fields_of(log_count) >> kLeftBits & ((std::uint64_t{1} << kCoreUseBits) - 1);
    return recent_only(CoreUse{static_cast<std::int32_t>(bits)}, now);
}

} // namespace snowflake
