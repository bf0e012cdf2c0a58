/* The time that a step takes. */

#pragma once

#include <chrono>
#include <cstdint>

#include "connection.h"

using Clock = std::chrono::steady_clock;

/* Others were in the way until the deadline. */
struct Late : Failure {
    using Failure::Failure;
};

inline std::int64_t milliseconds_since(Clock::time_point start)
{
    return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start).count();
}
