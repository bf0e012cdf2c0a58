/* The wall clock in Unix milliseconds. Both functions may be called under a buffer's lock. */
#pragma once

#include "rule/layout.h"

namespace snowflake::clock
{

/* As clock_timestamp(). */
UnixMs now();

/*
 * The kernel's clock at its last tick: an eighth of the cost of now(). Never later than now(), and
 * at most kTickMs earlier, except while a virtual machine is stopped. Where the system has no such
 * clock, the same as now().
 */
UnixMs at_last_tick();
constexpr std::int64_t kTickMs = 20;

} // namespace snowflake::clock
