/* Obstacles to redirecting a PgBouncer, found without a change: during the switch it is too late.
 */

#pragma once

#include <vector>

#include "move/obstacles.h"
#include "move/pgbouncer.h"

/* source: its role and password are used to ask the server to which an alias leads. */
std::vector<Obstacle> find_obstacles(PgBouncer& bouncer, Connection& source);
