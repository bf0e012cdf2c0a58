/* The time that a step takes. */

#pragma once

#include <chrono>
#include <cstdint>

/* A deadline must not move when the time of day is set. */
using Clock = std::chrono::steady_clock;

inline std::int64_t milliseconds_since(Clock::time_point start)
{
    return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start).count();
}
