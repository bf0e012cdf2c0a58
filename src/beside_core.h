/*
 * Drawing from a sequence that a PL/pgSQL function draws from as well, by nextval() and a clock of
 * its own: the days of a rollout. That function's IDs have the milliseconds of its clock and the
 * counters of our common position, so it makes one of ours again if we have used its counter in its
 * millisecond. Two rules prevent that, for as long as lease.h's note of core's use lasts:
 *
 *  - No ID is ahead of the clock: not in a burst, and not where nextval() has carried the position
 *    into the next millisecond, which the function's clock is still to reach.
 *  - A session leaves most of a millisecond's 1024 counters to the function. If we used all of
 * them, its next call would find the counter come round while its clock still shows that
 * millisecond.
 *
 * What the function makes twice by itself remains: it reads the clock after nextval(), and a
 * session that is interrupted between the two has an old counter and a new time.
 */
#pragma once

#include "layout.h"

namespace snowflake
{

constexpr std::int64_t kSharePerMs = 64;

/* What one session has drawn of one millisecond. */
struct Share {
    UnixMs ms;
    std::int64_t taken;

    constexpr std::int64_t left_at(UnixMs now, std::int64_t wanted) const
    {
        const std::int64_t left = now == ms ? kSharePerMs - taken : kSharePerMs;
        return wanted < left ? wanted : left;
    }

    constexpr void take(UnixMs now, std::int64_t count)
    {
        taken = now == ms ? taken + count : count;
        ms = now;
    }
};

} // namespace snowflake
