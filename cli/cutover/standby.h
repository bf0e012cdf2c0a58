/* Commits that wait for a synchronous standby. */

#pragma once

#include <functional>

#include "postgres/connection.h"
#include "postgres/obstacles.h"

/* Each commit of the server would wait, because too few synchronous standbys follow. Nothing if the
 * role may not see them. */
Obstacles find_missing_standby(Connection& connection);

/* Tells that the statement waits for such a standby, for a Watch. */
std::function<void()> tell_of_standby(const Connection& connection);
/* The same, before the cutover, where Ctrl-C gives up the statement. */
std::function<void()> stop_or_tell(const Connection& connection);
