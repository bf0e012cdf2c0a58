/*
 * decide_draw() over a box of inputs around its edges: each decision is checked against the
 * comments of decide.h.
 */
#pragma once

#include "rule/decide.h"

#include <algorithm>
#include <iostream>
#include <vector>

namespace model
{

struct RuleCheck {
    std::size_t inputs = 0;
    std::size_t issued = 0;
    std::size_t wrong = 0;
};

struct RuleInput {
    snowflake::Stored stored;
    snowflake::UnixMs now;
    std::int64_t wanted;
    snowflake::Limits limits;
    bool has_waited;
};

/* Null where the decision is right. */
inline const char* objection_to(const snowflake::Draw& draw, const RuleInput& in)
{
    using namespace snowflake;
    const Start start = start_of(in.stored, in.limits.epoch);
    if (draw.verdict == Verdict::pace)
        return in.has_waited ? "a caller that has waited is told to wait again" : nullptr;
    if (draw.verdict != Verdict::issue)
        return draw.count == 0 ? nullptr : "refused, but with a count";

    const Position last = last_position(draw);
    if (start.is_used ? draw.first <= start.position : draw.first < start.position)
        return "not above the stored position";
    if (draw.count < 1 || draw.count > in.wanted)
        return "a count outside of what was wanted";
    if (ms_of(draw.first) < in.now)
        return "behind the clock";
    if (raw(ms_of(draw.first)) < raw(in.limits.epoch) ||
        raw(ms_of(last)) - raw(in.limits.epoch) > kMaxAge)
        return "outside of the epoch";
    if (last > in.limits.max_value)
        return "above MAXVALUE";
    if (((raw(draw.first) - raw(start.position)) & kMaxCounter) != (start.is_used ? 1 : 0))
        return "the counter does not roll on";
    if (in.stored.is_set && ms_of(start.position) <= in.now && !in.has_waited)
        return "did not wait after the value was set";

    const std::int64_t first_lead = raw(ms_of(draw.first)) - raw(in.now);
    if (in.limits.max_drift >= 0 && first_lead > std::max(in.limits.max_drift, in.limits.max_lead))
        return "further ahead than the drift allows";
    const bool is_begun = ms_of(draw.first) == ms_of(start.position) || in.has_waited;
    if (raw(ms_of(last)) - raw(in.now) > in.limits.max_lead &&
        (!is_begun || ms_of(last) != ms_of(draw.first)))
        return "further ahead than the lead allows";
    return nullptr;
}

inline void check_one(const RuleInput& in, RuleCheck& check)
{
    const snowflake::Draw draw =
        decide_draw(in.stored, in.now, in.wanted, in.limits, in.has_waited);
    ++check.inputs;
    check.issued += draw.verdict == snowflake::Verdict::issue;
    const char* objection = objection_to(draw, in);
    if (objection != nullptr && check.wrong++ == 0)
        std::cout << "decide_draw(" << in.stored.value << (in.stored.is_called ? "" : " uncalled")
                  << (in.stored.is_set ? " set" : "") << ", now " << raw(in.now) << ", wanted "
                  << in.wanted << ", max_lead " << in.limits.max_lead << ", max_drift "
                  << in.limits.max_drift << ", epoch " << raw(in.limits.epoch) << ", MAXVALUE "
                  << raw(in.limits.max_value) << (in.has_waited ? ", has waited" : "")
                  << "): " << objection << '\n';
}

/* With this epoch, the IDs of the box's milliseconds are large enough to be told from positions. */
constexpr snowflake::Epoch kEpochOfIds{-(std::int64_t{1} << 30) - 1};

/* Before, at and after the clock, further ahead than a carry, and with both ends of the counter. */
inline std::vector<snowflake::Stored> stored_in_box()
{
    using namespace snowflake;
    std::vector<std::int64_t> values;
    for (const std::int64_t ms : {-1, 0, 1, 2, 3, 4, 1003}) {
        for (const std::int64_t counter : {0, 1, 2, 511, 1022, 1023})
            values.push_back(ms * kPositionsPerMs + counter);
        values.push_back(raw(make_id(age_at(UnixMs{ms}, kEpochOfIds), Shard{5}, Counter{511})));
    }
    std::vector<Stored> all;
    for (const std::int64_t value : values)
        for (const int flags : {0, 1, 2, 3})
            all.push_back({value, (flags & 1) != 0, (flags & 2) != 0});
    return all;
}

/* Epochs that begin and end among the box's milliseconds. */
inline std::vector<snowflake::Limits> limits_in_box()
{
    using namespace snowflake;
    std::vector<Limits> all;
    for (const std::int64_t max_lead : {0, 1, 2, 1000})
        for (const std::int64_t max_drift : {-1, 0, 1, 2, 2000})
            for (const std::int64_t epoch :
                 {std::int64_t{1}, 2 - kMaxAge, 4 - kMaxAge, raw(kEpochOfIds)})
                for (const Position max_value : {Position{2050}, kMaxPosition})
                    all.push_back({max_lead, max_drift, Epoch{epoch}, max_value});
    return all;
}

inline RuleCheck check_rule()
{
    RuleCheck check;
    const std::vector<snowflake::Limits> all_limits = limits_in_box();
    for (const snowflake::Stored& stored : stored_in_box())
        for (const std::int64_t now : {-1, 0, 1, 2, 3, 4, 5})
            for (const std::int64_t wanted : {1, 2, 1023, 1024, 1025, 2048, 5000})
                for (const snowflake::Limits& limits : all_limits)
                    for (const bool has_waited : {false, true})
                        check_one({stored, snowflake::UnixMs{now}, wanted, limits, has_waited},
                                  check);
    return check;
}

} // namespace model
