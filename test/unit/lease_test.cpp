#include "lease.h"

#include <gtest/gtest.h>

#include "random_seed.h"

using namespace snowflake;

namespace
{

constexpr std::int64_t kMinute = 60000;
constexpr std::int64_t kNow = 1795260000000;

TEST(Lease, CountsOnlyUnderTheLsnThatPromisedIt)
{
    auto random = seeded_random("CountsOnlyUnderTheLsnThatPromisedIt");
    for (int i = 0; i < 100000; ++i) {
        /* LSNs are multiples of 8, and never 0 for a record. */
        const auto lsn = static_cast<std::uint64_t>(between(random, 1, std::int64_t{1} << 50)) * 8;
        const std::int64_t left = between(random, 1, kLeasePositions);
        const CoreUse use{static_cast<std::int32_t>(between(random, 0, kCoreUseCycle))};
        const std::int64_t count = encode_log_count(lsn, left, use);
        ASSERT_LT(count, 0) << "core takes a negative count as: log at once";
        ASSERT_EQ(positions_left(count, lsn), left);
        const std::uint64_t other =
            lsn + static_cast<std::uint64_t>(between(random, 1, 1 << 30)) * 8;
        ASSERT_EQ(positions_left(count, other), 0);
    }
}

TEST(Lease, CoresOwnCountsAreNoLease)
{
    for (const std::int64_t count : {0, 1, 32, 1000})
        for (const std::uint64_t lsn : {0, 8, 1 << 20})
            EXPECT_EQ(positions_left(count, lsn), 0);
    EXPECT_EQ(positions_left(encode_no_lease(CoreUse::none), 0), 0);
    EXPECT_EQ(positions_left(INT64_MIN, 0), 0) << "nothing that a page can hold breaks the reading";
}

TEST(Lease, CoreUseIsSeenAndForgottenInTime)
{
    const CoreUse seen = core_use_of(17, true, UnixMs{kNow});
    ASSERT_NE(seen, CoreUse::none);
    EXPECT_EQ(core_use_of(0, false, UnixMs{kNow}), CoreUse::none) << "an untouched sequence";

    const std::int64_t count = encode_log_count(4096, 5, seen);
    for (std::int64_t minutes = -kClockSlackMinutes; minutes < kCoreUseMinutes; ++minutes)
        EXPECT_EQ(core_use_of(count, true, UnixMs{kNow + minutes * kMinute}), seen) << minutes;
    for (std::int64_t minutes = kCoreUseMinutes; minutes < kCoreUseCycle - kClockSlackMinutes;
         ++minutes)
        EXPECT_EQ(core_use_of(count, true, UnixMs{kNow + minutes * kMinute}), CoreUse::none)
            << minutes;
}

TEST(Lease, CoreUseStandsBesideTheLease)
{
    auto random = seeded_random("CoreUseStandsBesideTheLease");
    for (int i = 0; i < 100000; ++i) {
        const UnixMs now{between(random, -kNow, 2 * kNow)};
        const CoreUse use = core_use_at(now);
        const std::int64_t left = between(random, 0, kLeasePositions);
        const std::int64_t count = encode_log_count(1 << 20, left, use);
        ASSERT_EQ(core_use_of(count, true, now), use);
        ASSERT_EQ(positions_left(count, 1 << 20), left);
    }
}

} // namespace
