/* The wall clock: see clock.h. */
#include "sequence/clock.h"

#include <ctime>

#include "pg.h"
#include "rule/timestamp.h"

namespace snowflake::clock
{

UnixMs now()
{
    return floor_to_ms(GetCurrentTimestamp());
}

UnixMs at_last_tick()
{
#ifdef CLOCK_REALTIME_COARSE
    timespec time;
    if (clock_gettime(CLOCK_REALTIME_COARSE, &time) == 0)
        return UnixMs{std::int64_t{time.tv_sec} * 1000 + time.tv_nsec / 1000000};
#endif
    return now();
}

} // namespace snowflake::clock
