#include "rule/layout.h"
#include "rule/timestamp.h"

#include <gtest/gtest.h>

#include "random_seed.h"

using namespace snowflake;

namespace
{

constexpr int kLayoutRounds = 200000;

TEST(Layout, PublishedExample)
{
    const std::int64_t age = 1387263000;
    const std::int64_t published =
        age << (64 - 41) | std::int64_t{31341 % 2000} << (64 - 41 - 13) | 5001 % 1024;
    EXPECT_EQ(raw(make_id(Age{age}, Shard{1341}, Counter{905})), published);
    EXPECT_EQ(raw(shard_of(Id{published})), 1341);
    EXPECT_EQ(raw(counter_of(Id{published})), 905);
}

TEST(Layout, EveryBigintDecodesAndFieldsRoundTrip)
{
    auto random = seeded_random("EveryBigintDecodesAndFieldsRoundTrip");
    for (int i = 0; i < kLayoutRounds; ++i) {
        const Id id{between(random, INT64_MIN, INT64_MAX)};
        const std::int64_t age = raw(age_of(id));
        ASSERT_GE(age, 0);
        ASSERT_LT(age, std::int64_t{1} << kTimeBits);
        ASSERT_TRUE(is_valid_shard(raw(shard_of(id))));
        ASSERT_TRUE(is_valid_counter(raw(counter_of(id))));
        if (raw(id) >= 0) {
            ASSERT_EQ(make_id(age_of(id), shard_of(id), counter_of(id)), id);
        }
    }
}

/* The two equivalences that index ranges stand on, over random ages and the ends of the type. */
TEST(Layout, BoundsSplitTheIdsAtTheirAge)
{
    auto random = seeded_random("BoundsSplitTheIdsAtTheirAge");
    for (int i = 0; i < kLayoutRounds; ++i) {
        const Id id{between(random, 0, INT64_MAX - 1)};
        const std::int64_t ages[] = {raw(age_of(id)) + between(random, -1, 1),
                                     between(random, INT64_MIN, INT64_MAX),
                                     INT64_MIN,
                                     -1,
                                     0,
                                     kMaxAge,
                                     kMaxAge + 1,
                                     INT64_MAX};
        for (const std::int64_t age : ages) {
            ASSERT_EQ(id >= lowest_id(Age{age}), raw(age_of(id)) >= age) << raw(id) << ' ' << age;
            ASSERT_EQ(id <= highest_id(Age{age}), raw(age_of(id)) <= age) << raw(id) << ' ' << age;
        }
    }
}

TEST(Layout, TimesSaturateInsteadOfOverflowing)
{
    EXPECT_EQ(raw(age_at(UnixMs{INT64_MAX}, Epoch{INT64_MIN})), INT64_MAX);
    EXPECT_EQ(raw(age_at(UnixMs{INT64_MIN}, Epoch{INT64_MAX})), INT64_MIN);
    EXPECT_EQ(raw(time_at(Age{kMaxAge}, Epoch{INT64_MAX})), INT64_MAX);
    EXPECT_EQ(raw(time_at(Age{0}, Epoch{INT64_MIN})), INT64_MIN);
}

TEST(Timestamp, RoundsOutwardsAtTheMicrosecond)
{
    auto random = seeded_random("RoundsOutwardsAtTheMicrosecond");
    for (int i = 0; i < kLayoutRounds; ++i) {
        const std::int64_t timestamp = between(random, -211813488000000000, 9223371331199999999);
        std::int64_t low = 0;
        std::int64_t high = 0;
        ASSERT_TRUE(to_timestamp(floor_to_ms(timestamp), &low));
        ASSERT_TRUE(to_timestamp(ceil_to_ms(timestamp), &high));
        ASSERT_LE(low, timestamp);
        ASSERT_GT(low + kUsPerMs, timestamp);
        ASSERT_GE(high, timestamp);
        ASSERT_LT(high - kUsPerMs, timestamp);
    }
}

TEST(Timestamp, InfinitiesStayOutsideOfEveryMillisecond)
{
    EXPECT_EQ(raw(floor_to_ms(kMinusInfinity)), INT64_MIN);
    EXPECT_EQ(raw(ceil_to_ms(kPlusInfinity)), INT64_MAX);
    std::int64_t timestamp = 0;
    EXPECT_FALSE(to_timestamp(UnixMs{INT64_MAX}, &timestamp));
    EXPECT_FALSE(to_timestamp(UnixMs{INT64_MIN}, &timestamp));
}

} // namespace
