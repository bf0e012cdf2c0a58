/* The wall clock, as Unix milliseconds. Both readings are safe under a buffer's lock. */
#pragma once

#include "layout.h"

namespace snowflake::clock
{

/* What clock_timestamp() says. */
UnixMs now();

/*
 * The kernel's clock as of its last tick, at an eighth of the price where the system has it. It is
 * never ahead of now(), and behind it by at most kTickMs, unless a virtual machine was not run.
 */
UnixMs at_last_tick();
constexpr std::int64_t kTickMs = 20;

} // namespace snowflake::clock
