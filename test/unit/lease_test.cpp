/* The lease in log_cnt, and when a WAL record is due. */
#include "rule/lease.h"

#include <gtest/gtest.h>

#include "random_seed.h"

using namespace snowflake;

namespace
{

TEST(Lease, CountsOnlyUnderTheLsnThatGrantedIt)
{
    auto random = seeded_random("CountsOnlyUnderTheLsnThatGrantedIt");
    for (int i = 0; i < 100000; ++i) {
        /* LSNs are multiples of 8, and never 0 for a record. */
        const auto lsn = static_cast<std::uint64_t>(between(random, 1, std::int64_t{1} << 50)) * 8;
        const std::int64_t left = between(random, 1, kLeasePositions);
        const std::int64_t count = encode_lease(lsn, left);
        ASSERT_LT(count, 0) << "core reads a negative count as: log at once";
        ASSERT_EQ(positions_left(count, lsn), left);
        const std::uint64_t other =
            lsn + static_cast<std::uint64_t>(between(random, 1, 1 << 30)) * 8;
        ASSERT_EQ(positions_left(count, other), 0);
    }
}

TEST(Lease, CountsOfCoreAreNoLease)
{
    for (const std::int64_t count : {kLogCountOfSet, std::int64_t{1}, std::int64_t{32}})
        for (const std::uint64_t lsn : {0, 8, 1 << 20})
            EXPECT_EQ(positions_left(count, lsn), 0);
    EXPECT_LT(kNoLease, 0);
    EXPECT_EQ(positions_left(kNoLease, 0), 0);
    EXPECT_EQ(positions_left(INT64_MIN, 0), 0) << "every bigint can be read";
}

TEST(Lease, ARecordIsDueWhereReplayWouldFallShort)
{
    EXPECT_FALSE(is_record_due(10, 10, false));
    EXPECT_FALSE(is_record_due(10, 0, false));
    EXPECT_TRUE(is_record_due(10, 11, false)) << "the lease is too short";
    EXPECT_TRUE(is_record_due(10, 1, true)) << "a checkpoint has passed the record";
    EXPECT_TRUE(is_record_due(0, 0, false)) << "no lease, and replay leaves the value unused";
    EXPECT_TRUE(is_record_due(10, -1, false)) << "an ID was stored";
}

} // namespace
