/*
 * The rule by itself: next() over a box of all inputs around its edges, each answer checked against
 * what is said of it in position.h.
 */
#pragma once

#include "position.h"

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
    snowflake::Circumstances circumstances;
};

/* Null where the decision is right. */
inline const char* objection_to(const snowflake::Decision& decision, const RuleInput& in)
{
    using namespace snowflake;
    const std::int64_t stored = raw(in.stored.position);
    const std::int64_t first = raw(decision.first);
    const bool may_wait = !in.circumstances.paced || in.circumstances.follows_clock;
    if (decision.verdict == Verdict::pace)
        return may_wait ? nullptr : "who has waited is told to wait again";
    if (decision.verdict != Verdict::issue)
        return decision.count == 0 ? nullptr : "refused, but with a count";

    const Position last = last_position(decision);
    if (in.stored.is_called ? first <= stored : first < stored)
        return "not above the stored position";
    if (decision.count < 1 || decision.count > in.wanted)
        return "a count outside of what was wanted";
    if (ms_of(decision.first) < in.now)
        return "behind the clock";
    if (ms_of(decision.first) < in.limits.first || ms_of(last) > in.limits.last)
        return "outside of the epoch";
    if (last > in.limits.max_value)
        return "above MAXVALUE";
    if (((first - stored) & kMaxCounter) != (in.stored.is_called ? 1 : 0))
        return "the counter does not roll on";

    const std::int64_t lead = raw(ms_of(last)) - raw(in.now);
    if (in.limits.max_drift >= 0 && raw(ms_of(decision.first)) - raw(in.now) >
                                        std::max(in.limits.max_drift, in.limits.max_lead))
        return "further ahead than the drift allows";
    const bool began_before =
        ms_of(decision.first) == ms_of(in.stored.position) || in.circumstances.paced;
    const std::int64_t burst = in.circumstances.follows_clock ? 0 : in.limits.max_lead;
    if (lead > burst && (!began_before || ms_of(last) != ms_of(decision.first)))
        return "further ahead than the lead allows";
    if (in.circumstances.follows_clock && lead > 0 && lead <= kCatchUpMs)
        return "ahead of the clock beside nextval()";
    return nullptr;
}

inline void check_one(const RuleInput& in, RuleCheck& check)
{
    const snowflake::Decision decision =
        next(in.stored, in.now, in.wanted, in.limits, in.circumstances);
    ++check.inputs;
    check.issued += decision.verdict == snowflake::Verdict::issue;
    const char* objection = objection_to(decision, in);
    if (objection != nullptr && check.wrong++ == 0)
        std::cout << "next(" << raw(in.stored.position) << (in.stored.is_called ? "" : " uncalled")
                  << ", now " << raw(in.now) << ", wanted " << in.wanted << ", max_lead "
                  << in.limits.max_lead << ", max_drift " << in.limits.max_drift << ", epoch "
                  << raw(in.limits.first) << ".." << raw(in.limits.last) << ", MAXVALUE "
                  << raw(in.limits.max_value) << (in.circumstances.paced ? ", paced" : "")
                  << (in.circumstances.follows_clock ? ", follows the clock" : "")
                  << "): " << objection << '\n';
}

/* On both sides of the clock, beyond a carry, and with both ends of the counters. */
inline std::vector<snowflake::Stored> stored_in_box()
{
    using namespace snowflake;
    std::vector<Stored> all;
    for (const std::int64_t ms : {-1, 0, 1, 2, 3, 4, 1003})
        for (const std::int64_t counter : {0, 1, 2, 511, 1022, 1023})
            for (const bool is_called : {false, true})
                all.push_back({Position{ms * kPositionsPerMs + counter}, is_called});
    return all;
}

inline std::vector<snowflake::Limits> limits_in_box()
{
    using namespace snowflake;
    std::vector<Limits> all;
    for (const std::int64_t max_lead : {0, 1, 2, 1000})
        for (const std::int64_t max_drift : {-1, 0, 1, 2, 2000})
            for (const std::int64_t first : {-5, 1})
                for (const std::int64_t last : {2, 4, 5000})
                    for (const std::int64_t max_value : {std::int64_t{2050}, INT64_MAX})
                        all.push_back({max_lead, max_drift, UnixMs{first}, UnixMs{last},
                                       Position{max_value}});
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
                    for (const int flags : {0, 1, 2, 3})
                        check_one({stored,
                                   snowflake::UnixMs{now},
                                   wanted,
                                   limits,
                                   {(flags & 1) != 0, (flags & 2) != 0}},
                                  check);
    return check;
}

} // namespace model
