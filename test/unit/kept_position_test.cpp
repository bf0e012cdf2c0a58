#include "kept_position.h"

#include <gtest/gtest.h>

#include <utility>

#include "random_seed.h"

using namespace snowflake;

namespace
{

constexpr std::int64_t kNow = 1795260000000;
constexpr UnixMs kClock{kNow};
constexpr std::int64_t kLead = 1000;

constexpr Position at(std::int64_t ms, std::int64_t counter)
{
    return Position{ms * kPositionsPerMs + counter};
}

TEST(KeptPosition, IsReadAsItWasWritten)
{
    auto random = seeded_random("IsReadAsItWasWritten");
    for (int i = 0; i < 100000; ++i) {
        const Position position{between(random, 1, raw(kMaxKept))};
        KeptBytes bytes;
        write_kept(position, bytes);
        ASSERT_EQ(read_kept(bytes), position);
    }
    for (const Position position : {Position{1}, at(kNow, 1023), kMaxKept}) {
        KeptBytes bytes;
        write_kept(position, bytes);
        EXPECT_EQ(read_kept(bytes), position);
    }
}

TEST(KeptPosition, WhatDoesNotFitIsNotKept)
{
    for (const Position position : {Position{0}, Position{-1}, Position{INT64_MIN},
                                    Position{raw(kMaxKept) + 1}, Position{INT64_MAX}}) {
        KeptBytes bytes;
        write_kept(position, bytes);
        EXPECT_EQ(read_kept(bytes), kNoneKept) << raw(position);
    }
}

TEST(KeptPosition, AnUntouchedSequenceGoesOnFromWhatIsStored)
{
    for (const bool is_called : {false, true}) {
        const Stored stored{Position{5000}, is_called};
        const Stored from = resume(stored, kNoneKept, kClock, kLead);
        EXPECT_EQ(from.position, stored.position);
        EXPECT_EQ(from.is_called, is_called);
    }
}

/* RESTART, setval() to 1 and a little back: what the burst made stays behind. */
TEST(KeptPosition, ABurstIsNotTakenBack)
{
    const Position kept = at(kNow + 300, 77);
    for (const Stored stored :
         {Stored{Position{1}, false}, Stored{Position{1}, true}, Stored{at(kNow + 299, 0), true},
          Stored{Position{raw(kept) - 1}, true}, Stored{kept, false}}) {
        const Stored from = resume(stored, kept, kClock, 0);
        EXPECT_EQ(from.position, kept) << raw(stored.position);
        EXPECT_TRUE(from.is_called);
    }
}

TEST(KeptPosition, CoresOwnStepsAreGoneOnFrom)
{
    const Position kept = at(kNow + 300, 77);
    for (const Stored stored : {Stored{kept, true}, Stored{Position{raw(kept) + 1}, true},
                                Stored{Position{raw(kept) + 1}, false}})
        EXPECT_EQ(resume(stored, kept, kClock, kLead).position, stored.position);
}

/* The counter of a new millisecond comes from what is stored, as the original's would. */
TEST(KeptPosition, WhatTheClockHasPassedNeedsNoKeeping)
{
    const Stored stored{Position{5000}, true};
    EXPECT_EQ(resume(stored, at(kNow - 1, 1023), kClock, kLead).position, stored.position);
    EXPECT_EQ(resume(stored, at(kNow, 0), kClock, kLead).position, at(kNow, 0));
}

TEST(KeptPosition, MoreThanThatIsAMistakePutRight)
{
    const Stored stored{Position{1}, true};
    for (const auto& [max_lead, reached] :
         {std::pair{std::int64_t{0}, std::int64_t{4000}}, std::pair{kLead, std::int64_t{5000}},
          std::pair{std::int64_t{600000}, std::int64_t{604000}}}) {
        const Position last = at(kNow + reached, 1023);
        EXPECT_EQ(resume(stored, last, kClock, max_lead).position, last) << max_lead;
        EXPECT_EQ(resume(stored, Position{raw(last) + 1}, kClock, max_lead).position,
                  stored.position)
            << max_lead;
    }
}

/* What is raised to is kept from then on, so it must not be less than what was. */
TEST(KeptPosition, RaisingLeavesWhatWasKept)
{
    const Position floor = at(kNow + 100, 1023);
    EXPECT_EQ(raised(floor, kNoneKept, kClock, kLead), floor);
    EXPECT_EQ(raised(floor, at(kNow + 99, 0), kClock, kLead), floor);
    EXPECT_EQ(raised(floor, at(kNow + 300, 77), kClock, kLead), at(kNow + 300, 77));

    /* The clock has passed both; it may step back. */
    EXPECT_EQ(raised(at(kNow - 9, 1023), at(kNow - 5, 3), kClock, kLead), at(kNow - 5, 3));

    const Position last = at(kNow + kLead + 4000, 1023);
    EXPECT_EQ(raised(floor, last, kClock, kLead), last);
    EXPECT_EQ(raised(floor, Position{raw(last) + 1}, kClock, kLead), floor);
}

} // namespace
