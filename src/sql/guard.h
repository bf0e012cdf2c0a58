/* Text that another role has written, where the current user parses or runs it: see guard.cpp. */
#pragma once

namespace snowflake::guard
{

/*
 * Calls work(argument). A function that the current user would run in it is an error (2F003) if
 * another role can have chosen it for its effects.
 */
void call(void (*work)(void*), void* argument);

} // namespace snowflake::guard
