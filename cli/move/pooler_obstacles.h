/* Obstacles to redirecting a PgBouncer, found without a change: during the switch it is too late.
 */

#pragma once

#include <vector>

#include "move/obstacles.h"
#include "move/pgbouncer.h"

std::vector<Obstacle> find_obstacles(PgBouncer& bouncer, Connection& source);
