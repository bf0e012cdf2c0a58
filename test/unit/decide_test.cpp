/* The rule: reading a stored value, the position of a draw, and that of an advance. */
#include "rule/decide.h"

#include <gtest/gtest.h>

#include "random_seed.h"

using namespace snowflake;

namespace
{

constexpr UnixMs kNow{1795260000000}; /* some day in 2026 */
constexpr std::int64_t kSecond = 1000;
constexpr std::int64_t kHour = 3600 * kSecond;
constexpr std::int64_t kYear = std::int64_t{365} * 24 * kHour;

constexpr UnixMs operator+(UnixMs time, std::int64_t ms)
{
    return UnixMs{raw(time) + ms};
}

constexpr Limits kUsual = {kSecond, kHour, kInstagramEpoch, kMaxPosition};

constexpr Limits with_lead(std::int64_t max_lead)
{
    return {max_lead, kHour, kInstagramEpoch, kMaxPosition};
}

constexpr Limits with_max_value(Position max_value)
{
    return {kSecond, kHour, kInstagramEpoch, max_value};
}

constexpr Position at(UnixMs ms, std::int64_t counter)
{
    return Position{raw(ms) * kPositionsPerMs + counter};
}

/* The tuple after a draw; the tuple after setval(), RESTART or an advance. */
constexpr Stored drawn(Position position)
{
    return {raw(position), true, false};
}

constexpr Stored set_to(std::int64_t value, bool is_called)
{
    return {value, is_called, true};
}

constexpr Stored kOld = drawn(Position{5000});

/* A caller at kNow that has not waited. */
constexpr Draw draw(const Stored& stored, std::int64_t wanted, const Limits& limits)
{
    return decide_draw(stored, kNow, wanted, limits, false);
}

constexpr Draw draw_after_wait(const Stored& stored, std::int64_t wanted, const Limits& limits)
{
    return decide_draw(stored, kNow, wanted, limits, true);
}

/* A refusal has a `first` too: look at the verdict first. */
Position issued(const Draw& draw)
{
    EXPECT_EQ(draw.verdict, Verdict::issue);
    return draw.first;
}

TEST(StoredValue, IsAnIdAboveTheLastPosition)
{
    const Id id = make_id(age_at(kNow, kInstagramEpoch), Shard{5}, Counter{7});
    for (const bool is_called : {false, true}) {
        const Start start = start_of({raw(id), is_called, true}, kInstagramEpoch);
        EXPECT_EQ(start.position, at(kNow, kMaxCounter)) << "the end of its millisecond";
        EXPECT_TRUE(start.is_used);
    }
    const std::int64_t last = raw(kMaxPosition);
    EXPECT_EQ(start_of({last, true, true}, kInstagramEpoch).position, kMaxPosition);
    EXPECT_FALSE(start_of({last, false, true}, kInstagramEpoch).is_used);
    EXPECT_EQ(ms_of(start_of({last + 1, false, true}, kInstagramEpoch).position),
              UnixMs{raw(kInstagramEpoch) + ((last + 1) >> kTimeShift)});
}

TEST(StoredValue, IsReadWithTheEpochOfTheCaller)
{
    const Epoch epoch{1767225600000};
    const Id id = make_id(age_at(kNow, epoch), Shard{5}, Counter{7});
    ASSERT_GT(raw(id), raw(kMaxPosition));
    EXPECT_EQ(start_of({raw(id), true, true}, epoch).position, at(kNow, kMaxCounter));
}

TEST(Draw, AnOldSequenceJumpsToNowAndItsCounterRollsOn)
{
    EXPECT_EQ(issued(draw(kOld, 1, kUsual)), at(kNow, 5001 % 1024));
}

TEST(Draw, ASequenceThatIsNotCalledStartsWithItsOwnValue)
{
    EXPECT_EQ(issued(draw({1, false, false}, 1, kUsual)), at(kNow, 1));
}

TEST(Draw, GoesOnFromTheLastOneWithinAMillisecond)
{
    const Draw next = draw(drawn(at(kNow, 7)), 1, with_lead(0));
    EXPECT_EQ(issued(next), at(kNow, 8));
    EXPECT_EQ(next.lead, 0);
}

TEST(Draw, CarriesIntoTheNextMillisecondAsFarAsTheLeadAllows)
{
    const Stored full = drawn(at(kNow, kMaxCounter));
    EXPECT_EQ(issued(draw(full, 1, with_lead(1))), at(kNow + 1, 0));
    EXPECT_EQ(draw(full, 1, with_lead(0)).verdict, Verdict::pace);
    EXPECT_EQ(issued(draw_after_wait(full, 1, with_lead(0))), at(kNow + 1, 0));
}

TEST(Draw, FinishesAMillisecondThatItHasBegun)
{
    const Stored ahead = drawn(at(kNow + 500, 3));
    EXPECT_EQ(issued(draw(ahead, 1, with_lead(0))), at(kNow + 500, 4));
    EXPECT_EQ(draw(ahead, 9999, with_lead(0)).count, 1020);
}

/* IDs drawn before setval() or RESTART may be of the clock's millisecond. */
TEST(Draw, PacesOnceAfterTheValueWasSet)
{
    for (const bool is_called : {false, true})
        for (const std::int64_t value :
             {std::int64_t{1}, raw(at(kNow + -1, 1023)), raw(at(kNow, 0))}) {
            const Stored stored = set_to(value, is_called);
            EXPECT_EQ(draw(stored, 1, kUsual).verdict, Verdict::pace) << value;
            EXPECT_EQ(draw_after_wait(stored, 1, kUsual).verdict, Verdict::issue) << value;
        }
    EXPECT_EQ(issued(draw(set_to(raw(at(kNow + 1, 0)), true), 1, kUsual)), at(kNow + 1, 1));
    EXPECT_EQ(issued(draw(kOld, 1, kUsual)), at(kNow, 5001 % 1024)) << "drawn, not set";
}

TEST(Draw, GoesOnBehindAStoredId)
{
    const Id id = make_id(age_at(kNow + 300, kInstagramEpoch), Shard{5}, Counter{7});
    for (const bool is_called : {false, true})
        EXPECT_EQ(issued(draw(set_to(raw(id), is_called), 1, kUsual)), at(kNow + 301, 0));
    const Id far = make_id(age_at(kNow + kYear, kInstagramEpoch), Shard{5}, Counter{7});
    const Draw refused = draw(set_to(raw(far), true), 1, kUsual);
    EXPECT_EQ(refused.verdict, Verdict::clock_behind);
    EXPECT_EQ(refused.lead, kYear + 1);
}

TEST(Draw, RefusesWhatItCannotExpress)
{
    EXPECT_EQ(draw(drawn(at(kNow + (kHour + 1), 0)), 1, kUsual).verdict, Verdict::clock_behind);
    EXPECT_NE(draw(drawn(at(kNow + kHour, 0)), 1, kUsual).verdict, Verdict::clock_behind);
    EXPECT_EQ(decide_draw(kOld, UnixMs{0}, 1, kUsual, false).verdict, Verdict::before_epoch);
    const UnixMs last_ms{raw(kInstagramEpoch) + kMaxAge};
    EXPECT_EQ(decide_draw(kOld, last_ms, 1, kUsual, false).verdict, Verdict::issue);
    EXPECT_EQ(decide_draw(kOld, last_ms + 1, 1, kUsual, false).verdict, Verdict::past_last_ms);
    EXPECT_EQ(draw(kOld, 1, with_max_value(Position{2147483647})).verdict, Verdict::past_max_value);
}

TEST(Draw, ABlockEndsWithTheEpochAndWithTheSequence)
{
    const UnixMs last_ms{raw(kInstagramEpoch) + kMaxAge};
    const Draw at_end = decide_draw(kOld, last_ms + -1, 999999, kUsual, false);
    EXPECT_EQ(last_position(at_end), at(last_ms, kMaxCounter));
    EXPECT_EQ(last_position(draw(kOld, 999999, with_max_value(at(kNow, 1000)))), at(kNow, 1000));
}

/* A larger value would be read as an ID. */
TEST(Draw, NoPositionReachesAnId)
{
    const Limits late = {kSecond, -1, Epoch{raw(kMaxPositionMs) - 1000}, kMaxPosition};
    const Stored last_but_one = drawn(Position{raw(kMaxPosition) - 1});
    EXPECT_EQ(issued(draw_after_wait(last_but_one, 9, late)), kMaxPosition);
    EXPECT_EQ(draw_after_wait(last_but_one, 9, late).count, 1);
    EXPECT_EQ(draw_after_wait(drawn(kMaxPosition), 1, late).verdict, Verdict::past_last_ms);
    EXPECT_EQ(decide_draw(kOld, kMaxPositionMs, 9999, late, false).count, 1024 - 5001 % 1024);
    EXPECT_EQ(decide_draw(kOld, kMaxPositionMs + 1, 1, late, false).verdict, Verdict::past_last_ms);
}

TEST(Draw, EveryStoredValueHasAnAnswer)
{
    for (const std::int64_t value : {INT64_MIN, INT64_MIN + 1, std::int64_t{-1}, std::int64_t{0}})
        for (const bool is_called : {false, true})
            EXPECT_EQ(ms_of(issued(draw({value, is_called, false}, 1, kUsual))), kNow) << value;
    const Limits any_drift = {kSecond, -1, kInstagramEpoch, kMaxPosition};
    EXPECT_EQ(draw_after_wait(set_to(INT64_MAX, true), 1, any_drift).verdict,
              Verdict::past_last_ms);
    for (const std::int64_t epoch : {INT64_MIN, INT64_MAX})
        for (const std::int64_t value : {INT64_MIN, std::int64_t{1}, INT64_MAX})
            EXPECT_NE(
                draw({value, true, true}, 1, {kSecond, -1, Epoch{epoch}, kMaxPosition}).verdict,
                Verdict::issue);
    EXPECT_EQ(past_id(Id{INT64_MAX}, Epoch{INT64_MAX}), kMaxPosition);
    EXPECT_EQ(past_id(Id{0}, Epoch{INT64_MIN}), Position{INT64_MIN});
}

TEST(Advance, GoesUpAndNeverBack)
{
    const Id id = make_id(age_at(kNow, kInstagramEpoch), Shard{5}, Counter{7});
    const Position floor = at(kNow, kMaxCounter);
    for (const Stored& below : {kOld, drawn(at(kNow, 1022)), Stored{raw(floor), false, true},
                                set_to(raw(id) - (1 << kTimeShift), true)}) {
        const Advance advance = decide_advance(below, id, kUsual);
        EXPECT_EQ(advance.verdict, AdvanceVerdict::raise) << below.value;
        EXPECT_EQ(advance.position, floor) << below.value;
    }
    for (const Stored& there :
         {drawn(floor), Stored{raw(floor) + 1, false, true}, set_to(raw(id), false)})
        EXPECT_EQ(decide_advance(there, id, kUsual).verdict, AdvanceVerdict::is_past)
            << there.value;
}

TEST(Advance, RefusesWhatNothingCanFollow)
{
    const Id last = make_id(Age{kMaxAge}, Shard{0}, Counter{0});
    EXPECT_EQ(decide_advance(kOld, last, kUsual).verdict, AdvanceVerdict::past_last_ms);
    EXPECT_EQ(decide_advance(kOld, Id{raw(last) - 1}, kUsual).verdict, AdvanceVerdict::raise);
    EXPECT_EQ(
        decide_advance(kOld, Id{1}, {kSecond, kHour, Epoch{raw(kMaxPositionMs)}, kMaxPosition})
            .verdict,
        AdvanceVerdict::past_last_ms);
    EXPECT_EQ(decide_advance(kOld, Id{raw(last) - 1}, with_max_value(at(kNow, 0))).verdict,
              AdvanceVerdict::past_max_value);
}

TEST(Advance, PutsEveryLaterIdOfEveryShardAbove)
{
    auto random = seeded_random("PutsEveryLaterIdOfEveryShardAbove");
    for (int i = 0; i < 100000; ++i) {
        const Id id{between(random, 0, INT64_MAX - (std::int64_t{1} << kTimeShift))};
        const Position later{raw(past_id(id, kInstagramEpoch)) + 1};
        const Id lowest =
            make_id(age_at(ms_of(later), kInstagramEpoch), Shard{0}, counter_of(later));
        ASSERT_GT(lowest, id);
    }
}

/* A sequence, a clock that runs and steps, and callers that wait as the generator does. */
class Simulation
{
public:
    explicit Simulation(std::int64_t max_lead)
        : limits_{max_lead, -1, kInstagramEpoch, kMaxPosition}
    {
    }

    void step_clock(std::int64_t ms) { now_ = now_ + ms; }
    UnixMs now() const { return now_; }
    std::int64_t waits() const { return waits_; }

    /* RESTART, setval(): allowed where nothing is ahead of the clock. */
    void set_back(std::int64_t value)
    {
        if (ms_of(highest_) <= now_)
            stored_ = set_to(value, false);
    }

    /* One draw; checks every property of the rule. */
    void draw(std::int64_t wanted)
    {
        bool has_waited = false;
        for (;;) {
            const Draw next = decide_draw(stored_, now_, wanted, limits_, has_waited);
            if (next.verdict == Verdict::issue) {
                check(next, wanted, has_waited);
                highest_ = last_position(next);
                stored_ = drawn(highest_);
                return;
            }
            ASSERT_EQ(next.verdict, Verdict::pace);
            ASSERT_FALSE(has_waited) << "a caller that has waited goes on";
            has_waited = true;
            ++waits_;
            step_clock(1);
        }
    }

private:
    void check(const Draw& next, std::int64_t wanted, bool has_waited) const
    {
        ASSERT_GE(next.count, 1);
        ASSERT_LE(next.count, wanted);
        ASSERT_GT(next.first, highest_) << "strictly growing";
        ASSERT_GE(ms_of(next.first), now_) << "never behind the clock";
        const std::int64_t counter = (stored_.value + (stored_.is_called ? 1 : 0)) & kMaxCounter;
        ASSERT_EQ(raw(counter_of(next.first)), counter) << "the counter rolls on by one";
        if (raw(ms_of(last_position(next))) - raw(now_) > limits_.max_lead) {
            /* Then the block stays in a millisecond that was begun, or that was waited for. */
            ASSERT_EQ(ms_of(last_position(next)), ms_of(next.first));
            ASSERT_TRUE(has_waited || ms_of(next.first) == ms_of(Position{stored_.value}));
        }
    }

    Limits limits_;
    Stored stored_ = kOld;
    Position highest_ = Position{5000};
    UnixMs now_ = kNow;
    std::int64_t waits_ = 0;
};

TEST(Draw, RandomClocksAndResetsNeverBreakTheRule)
{
    auto random = seeded_random("RandomClocksAndResetsNeverBreakTheRule");
    for (int run = 0; run < 200; ++run) {
        Simulation simulation{between(random, 0, 1) * between(random, 0, 3 * kSecond)};
        for (int i = 0; i < 1000; ++i) {
            const std::int64_t dice = between(random, 0, 99);
            if (dice < 10)
                simulation.step_clock(between(random, 0, 5));
            else if (dice == 10)
                simulation.step_clock(-between(random, 1, kHour));
            else if (dice == 11)
                simulation.step_clock(between(random, 1, kHour));
            else if (dice < 20)
                simulation.set_back(between(random, 0, 2000));
            simulation.draw(dice % 3 == 0 ? between(random, 1, 3000) : 1);
            if (HasFatalFailure())
                return;
        }
    }
}

/* A clock that stepped back costs speed, not availability: 1024 positions a millisecond go on. */
TEST(Draw, ABackStepSlowsDownAndDoesNotStop)
{
    for (const std::int64_t back :
         {std::int64_t{1}, std::int64_t{250}, 10 * kSecond, kHour - kSecond, kYear, 10 * kYear}) {
        Simulation simulation{0};
        simulation.draw(1);
        simulation.step_clock(-back);
        const UnixMs start = simulation.now();
        for (int i = 0; i < 10 * 1024; ++i)
            simulation.draw(1);
        EXPECT_LE(simulation.waits(), 11) << back;
        EXPECT_LE(raw(simulation.now()) - raw(start), 11) << back;
    }
}

} // namespace
