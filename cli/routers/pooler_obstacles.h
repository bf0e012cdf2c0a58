/* Obstacles to redirecting a PgBouncer, found without a change: during the switch it is too late.
 */

#pragma once

#include "postgres/obstacles.h"
#include "routers/pgbouncer.h"

/* source: its role and password are used to ask the server to which an alias leads. */
Obstacles find_obstacles(PgBouncer& bouncer, Connection& source);
