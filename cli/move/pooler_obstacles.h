/* What would keep a PgBouncer from leading its clients to the target. Nothing is changed. */

#pragma once

#include <vector>

#include "move/obstacles.h"
#include "move/pgbouncer.h"

std::vector<Obstacle> find_obstacles(PgBouncer& bouncer, Connection& source);
