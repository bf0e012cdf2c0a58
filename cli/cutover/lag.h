/* How far a follower is behind, as a time. */

#pragma once

#include <cstdint>
#include <deque>

#include "base/clock.h"

/* The time that the follower needs for the WAL that it lacks, at the rate of the last seconds. */
class Lag
{
public:
    explicit Lag(Clock::duration most) : most_(most) {}

    /* Call it several times a second. left: bytes of WAL that the follower lacks; done: its
     * position, in bytes. False until a rate is known, unless almost nothing is left. */
    bool is_small(std::int64_t left, std::int64_t done);

private:
    struct Sample {
        Clock::time_point at;
        std::int64_t done;
    };

    const Clock::duration most_;
    std::deque<Sample> samples_; /* of the last seconds, the oldest first */
};
