/* The wall clock in Unix milliseconds. Both functions may be called under a buffer's lock. */
#pragma once

#include <ctime>

#include "pg.h"
#include "rule/timestamp.h"

namespace snowflake::clock
{

/* As clock_timestamp(). */
inline UnixMs now()
{
    return floor_to_ms(GetCurrentTimestamp());
}

/*
 * The kernel's clock at its last tick: an eighth of the cost of now(). Never later than now(), and
 * at most kTickMs earlier, except while a virtual machine is stopped. Where the system has no such
 * clock, the same as now().
 */
inline UnixMs at_last_tick()
{
#ifdef CLOCK_REALTIME_COARSE
    timespec time;
    if (clock_gettime(CLOCK_REALTIME_COARSE, &time) == 0)
        return UnixMs{std::int64_t{time.tv_sec} * 1000 + time.tv_nsec / 1000000};
#endif
    return now();
}
constexpr std::int64_t kTickMs = 20;

} // namespace snowflake::clock
