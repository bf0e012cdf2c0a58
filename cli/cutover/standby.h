/* Commits that wait for a synchronous standby. */

#pragma once

#include <functional>

#include "base/clock.h"
#include "postgres/connection.h"
#include "postgres/obstacles.h"

/* Each commit of the server would wait, because too few synchronous standbys follow. Nothing if the
 * role may not see them. */
Obstacles find_missing_standby(Connection& connection);

/* Returns when each standby that streams has flushed the WAL of this server up to now, also an
 * asynchronous one: it could take over, and would not know of the fence. Late, with its name, if
 * one has not by the deadline. Standbys that do not stream at this moment, those of standbys, and
 * pg_receivewal do not count, and none if the role may not see them. */
void await_standbys(Connection& server, Clock::time_point deadline);

/* Tells that the statement waits for such a standby, for a Watch. */
std::function<void()> tell_of_standby(const Connection& connection);
/* The same, before the cutover, where Ctrl-C gives up the statement. */
std::function<void()> stop_or_tell(const Connection& connection);
