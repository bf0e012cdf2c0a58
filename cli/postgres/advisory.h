/* Advisory locks by a name: hashtextextended(name, 0) is the key, in the current database. Any role
 * can take any of them, so no wait for one is without an end, and an error names its holders. */

#pragma once

#include <chrono>
#include <string>

#include "base/timeouts.h"
#include "postgres/connection.h"

/* More lines for an error: the sessions that hold the lock, and the statements that end them; empty
 * if nobody holds it. Not in a transaction that has failed. */
std::string holders_of(Connection& connection, const std::string& name);

/* Takes the lock for the session, outside of a transaction: one command at a time has the name on a
 * server, until its connection ends. A Failure if others still have it after the timeout: "another
 * snowflake-shard is <doing>: it has locked <name> ...", with the holders. */
void lock_by_name(Connection& connection, const std::string& name, const std::string& doing,
                  std::chrono::milliseconds timeout = timeouts::kCommandLock);
/* Several, in their order. */
void lock_by_names(Connection& connection, const std::vector<std::string>& names,
                   const std::string& doing,
                   std::chrono::milliseconds timeout = timeouts::kCommandLock);
