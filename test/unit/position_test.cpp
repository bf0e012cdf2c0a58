#include "beside_core.h"
#include "position.h"

#include <gtest/gtest.h>

#include "random_seed.h"

using namespace snowflake;

namespace
{

constexpr std::int64_t kNow = 1795260000000; /* some day in 2026 */
constexpr std::int64_t kSecond = 1000;
constexpr std::int64_t kMinute = 60 * kSecond;
constexpr std::int64_t kHour = 60 * kMinute;
constexpr std::int64_t kDay = 24 * kHour;
constexpr std::int64_t kYear = 365 * kDay;

constexpr Circumstances kPlain = {false, false};
constexpr Circumstances kPaced = {true, false};
constexpr Circumstances kBesideCore = {false, true};

Limits limits(std::int64_t max_lead, std::int64_t max_drift)
{
    return {max_lead, max_drift, time_at(Age{0}, kInstagramEpoch),
            time_at(Age{kMaxAge}, kInstagramEpoch), Position{INT64_MAX}};
}

Position at(std::int64_t ms, std::int64_t counter)
{
    return Position{ms * kPositionsPerMs + counter};
}

/* A refusal has a first position, too. */
Position issued(const Decision& decision)
{
    EXPECT_EQ(decision.verdict, Verdict::issue);
    return decision.first;
}

TEST(Position, AnOldSequenceJumpsToNowAndItsCounterRollsOn)
{
    const Decision decision =
        next({Position{5000}, true}, UnixMs{kNow}, 1, limits(1000, kHour), kPlain);
    EXPECT_EQ(decision.verdict, Verdict::issue);
    EXPECT_EQ(raw(ms_of(decision.first)), kNow);
    EXPECT_EQ(raw(counter_of(decision.first)), 5001 % 1024);
}

TEST(Position, AnUntouchedSequenceStartsWithItsOwnValue)
{
    const Decision decision =
        next({Position{1}, false}, UnixMs{kNow}, 1, limits(1000, kHour), kPlain);
    EXPECT_EQ(decision.first, at(kNow, 1));
}

TEST(Position, GoesOnFromTheLastOneWithinAMillisecond)
{
    const Decision decision = next({at(kNow, 7), true}, UnixMs{kNow}, 1, limits(0, 0), kPlain);
    EXPECT_EQ(decision.first, at(kNow, 8));
    EXPECT_EQ(decision.lead, 0);
}

TEST(Position, CarriesIntoTheNextMillisecondAsFarAsTheLeadAllows)
{
    const Stored full = {at(kNow, kMaxCounter), true};
    EXPECT_EQ(issued(next(full, UnixMs{kNow}, 1, limits(1, kHour), kPlain)), at(kNow + 1, 0));
    EXPECT_EQ(next(full, UnixMs{kNow}, 1, limits(0, kHour), kPlain).verdict, Verdict::pace);
    EXPECT_EQ(issued(next(full, UnixMs{kNow}, 1, limits(0, kHour), kPaced)), at(kNow + 1, 0));
}

TEST(Position, DoesNotLeadTheClockBesideCore)
{
    const Limits usual = limits(1000, kHour);
    const Stored full = {at(kNow, kMaxCounter), true};
    EXPECT_EQ(next(full, UnixMs{kNow}, 1, usual, kBesideCore).verdict, Verdict::pace);
    const Decision block = next({at(kNow, 0), true}, UnixMs{kNow}, 5000, usual, kBesideCore);
    EXPECT_EQ(last_position(block), at(kNow, kMaxCounter));
    /* Not in a millisecond that nextval() has begun ahead of the clock, and not after a wait. */
    const Stored carried = {at(kNow + 1, 0), true};
    EXPECT_EQ(next(carried, UnixMs{kNow}, 1, usual, kBesideCore).verdict, Verdict::pace);
    EXPECT_EQ(next(carried, UnixMs{kNow}, 1, usual, {true, true}).verdict, Verdict::pace);
    EXPECT_EQ(next(carried, UnixMs{kNow}, 1, limits(0, kHour), {true, true}).verdict,
              Verdict::pace);
    EXPECT_EQ(issued(next(carried, UnixMs{kNow + 1}, 1, usual, kBesideCore)), at(kNow + 1, 1));
    /* A clock that is further behind than a burst and a lease is not waited for. */
    const std::int64_t furthest = kNow + 1000 + kCatchUpMs;
    const Stored near = {at(furthest, 0), true};
    EXPECT_EQ(next(near, UnixMs{kNow}, 1, usual, {true, true}).verdict, Verdict::pace);
    const Stored far = {at(furthest + 1, 0), true};
    EXPECT_EQ(issued(next(far, UnixMs{kNow}, 1, usual, kBesideCore)), at(furthest + 1, 1));
}

TEST(BesideCore, ASessionLeavesMostOfAMillisecond)
{
    Share share = {};
    EXPECT_EQ(share.left_at(UnixMs{kNow}, 1), 1);
    EXPECT_EQ(share.left_at(UnixMs{kNow}, 5000), kSharePerMs);
    share.take(UnixMs{kNow}, kSharePerMs - 1);
    EXPECT_EQ(share.left_at(UnixMs{kNow}, 5000), 1);
    share.take(UnixMs{kNow}, 1);
    EXPECT_EQ(share.left_at(UnixMs{kNow}, 5000), 0);
    EXPECT_EQ(share.left_at(UnixMs{kNow + 1}, 5000), kSharePerMs);
    EXPECT_EQ(share.left_at(UnixMs{kNow - 1}, 5000), kSharePerMs) << "a clock that stepped back";
    share.take(UnixMs{kNow + 1}, 5);
    EXPECT_EQ(share.left_at(UnixMs{kNow + 1}, 5000), kSharePerMs - 5);
}

TEST(Position, FinishesAMillisecondThatItHasBegun)
{
    const Stored ahead = {at(kNow + 500, 3), true};
    EXPECT_EQ(issued(next(ahead, UnixMs{kNow}, 1, limits(0, kHour), kPlain)), at(kNow + 500, 4));
    EXPECT_EQ(next(ahead, UnixMs{kNow}, 9999, limits(0, kHour), kPlain).count, 1020);
}

TEST(Position, RefusesWhatItCannotExpress)
{
    const Limits usual = limits(1000, kHour);
    EXPECT_EQ(next({at(kNow + kHour + 1, 0), true}, UnixMs{kNow}, 1, usual, kPlain).verdict,
              Verdict::clock_behind);
    EXPECT_NE(next({at(kNow + kHour, 0), true}, UnixMs{kNow}, 1, usual, kPlain).verdict,
              Verdict::clock_behind);
    EXPECT_EQ(next({Position{1}, true}, UnixMs{0}, 1, usual, kPlain).verdict,
              Verdict::before_epoch);
    const std::int64_t last_ms = raw(kInstagramEpoch) + kMaxAge;
    EXPECT_EQ(next({Position{1}, true}, UnixMs{last_ms}, 1, usual, kPlain).verdict, Verdict::issue);
    EXPECT_EQ(next({Position{1}, true}, UnixMs{last_ms + 1}, 1, usual, kPlain).verdict,
              Verdict::past_last_ms);
    Limits small = usual;
    small.max_value = Position{2147483647};
    EXPECT_EQ(next({Position{1}, true}, UnixMs{kNow}, 1, small, kPlain).verdict,
              Verdict::past_max_value);
}

TEST(Position, ABlockEndsWithTheEpochAndWithTheSequence)
{
    const Stored old = {Position{1}, true};
    const std::int64_t last_ms = raw(kInstagramEpoch) + kMaxAge;
    const Decision at_end = next(old, UnixMs{last_ms - 1}, 999999, limits(1000, kHour), kPlain);
    EXPECT_EQ(last_position(at_end), at(last_ms, kMaxCounter));
    Limits small = limits(1000, kHour);
    small.max_value = at(kNow, 100);
    EXPECT_EQ(last_position(next(old, UnixMs{kNow}, 999999, small, kPlain)), at(kNow, 100));
}

TEST(Position, StandsTheEndsOfTheType)
{
    const Limits unlimited = {1000, -1, UnixMs{INT64_MIN}, UnixMs{INT64_MAX}, Position{INT64_MAX}};
    for (const std::int64_t value : {INT64_MIN, INT64_MIN + 1, std::int64_t{-1}, std::int64_t{0}}) {
        for (const bool is_called : {false, true}) {
            const Decision decision =
                next({Position{value}, is_called}, UnixMs{kNow}, 1, unlimited, kPlain);
            EXPECT_EQ(decision.verdict, Verdict::issue) << value;
            EXPECT_EQ(raw(ms_of(decision.first)), kNow) << value;
        }
    }
    EXPECT_EQ(next({Position{INT64_MAX}, true}, UnixMs{kNow}, 1, unlimited, kPlain).verdict,
              Verdict::past_max_value);
    EXPECT_EQ(next({Position{INT64_MAX}, true}, UnixMs{kNow}, 1, limits(1000, -1), kPlain).verdict,
              Verdict::past_last_ms);
    EXPECT_EQ(next({Position{INT64_MAX}, false}, UnixMs{kNow}, 9, unlimited, kPaced).count, 1);
    EXPECT_EQ(past_id(Id{INT64_MAX}, Epoch{INT64_MAX}), Position{INT64_MAX});
    EXPECT_EQ(past_id(Id{0}, Epoch{INT64_MIN}), Position{INT64_MIN});
}

TEST(Position, PastIdIsBelowEveryLaterIdOfEveryShard)
{
    auto random = seeded_random("PastIdIsBelowEveryLaterIdOfEveryShard");
    for (int i = 0; i < 100000; ++i) {
        const Id id{between(random, 0, INT64_MAX - (std::int64_t{1} << kTimeShift))};
        const Position floor = past_id(id, kInstagramEpoch);
        const Position later{raw(floor) + 1};
        const Id lowest =
            make_id(age_at(ms_of(later), kInstagramEpoch), Shard{0}, counter_of(later));
        ASSERT_GT(lowest, id);
    }
}

/* A sequence, a clock that runs and steps, and callers that wait as the generator does. */
class Simulation
{
public:
    explicit Simulation(const Limits& limits) : limits_(limits) {}

    void step_clock(std::int64_t ms) { now_ += ms; }
    std::int64_t now() const { return now_; }
    std::int64_t waits() const { return waits_; }
    Stored stored() const { return stored_; }

    /* One draw; asserts every property of the rule on the way. */
    void draw(std::int64_t wanted, bool beside_core)
    {
        bool paced = false;
        Position paced_at{};
        for (;;) {
            const bool waited = paced && paced_at == stored_.position;
            const Decision decision =
                next(stored_, UnixMs{now_}, wanted, limits_, {waited, beside_core});
            if (decision.verdict == Verdict::pace) {
                ASSERT_FALSE(waited && !beside_core) << "a caller that has waited goes on";
                paced = true;
                paced_at = stored_.position;
                ++waits_;
                ++now_;
                continue;
            }
            ASSERT_EQ(decision.verdict, Verdict::issue);
            check(decision, wanted, waited, beside_core);
            stored_ = {last_position(decision), true};
            return;
        }
    }

private:
    void check(const Decision& decision, std::int64_t wanted, bool waited, bool beside_core) const
    {
        ASSERT_GE(decision.count, 1);
        ASSERT_LE(decision.count, wanted);
        ASSERT_GT(decision.first, stored_.position) << "strictly growing";
        ASSERT_EQ(raw(counter_of(decision.first)),
                  (raw(counter_of(stored_.position)) + 1) & kMaxCounter)
            << "the counter rolls by one";
        ASSERT_GE(raw(ms_of(decision.first)), now_) << "never behind the clock";
        const std::int64_t burst = beside_core ? 0 : limits_.max_lead;
        const std::int64_t last_lead = raw(ms_of(last_position(decision))) - now_;
        if (last_lead > burst) {
            /* Then the block stays in a millisecond that was begun, or that was waited for. */
            ASSERT_EQ(ms_of(last_position(decision)), ms_of(decision.first));
            ASSERT_TRUE(waited || ms_of(decision.first) == ms_of(stored_.position));
        }
    }

    Limits limits_;
    Stored stored_ = {Position{5000}, true};
    std::int64_t now_ = kNow;
    std::int64_t waits_ = 0;
};

TEST(Position, RandomClocksNeverBreakTheRule)
{
    auto random = seeded_random("RandomClocksNeverBreakTheRule");
    for (int run = 0; run < 200; ++run) {
        const std::int64_t max_lead = between(random, 0, 1) * between(random, 0, 3 * kSecond);
        Simulation simulation{limits(max_lead, -1)};
        for (int i = 0; i < 1000; ++i) {
            const std::int64_t dice = between(random, 0, 99);
            if (dice < 10)
                simulation.step_clock(between(random, 0, 5));
            else if (dice == 10)
                simulation.step_clock(-between(random, 1, kHour));
            else if (dice == 11)
                simulation.step_clock(between(random, 1, kHour));
            simulation.draw(dice % 3 == 0 ? between(random, 1, 3000) : 1, dice % 7 == 0);
            if (HasFatalFailure())
                return;
        }
    }
}

/* A clock that stepped back costs speed, not availability: 1024 positions a millisecond go on. */
TEST(Position, ABackStepSlowsDownAndDoesNotStop)
{
    for (const std::int64_t back :
         {std::int64_t{1}, std::int64_t{250}, 10 * kSecond, 40 * kMinute, kYear, 10 * kYear}) {
        Simulation simulation{limits(0, -1)};
        simulation.draw(1, false);
        simulation.step_clock(-back);
        const std::int64_t start = simulation.now();
        for (int i = 0; i < 10 * 1024; ++i)
            simulation.draw(1, false);
        EXPECT_LE(simulation.waits(), 11) << back;
        EXPECT_LE(simulation.now() - start, 11) << back;
    }
}

} // namespace
