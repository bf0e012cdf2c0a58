/* Whether a server can have logical slots. */

#pragma once

#include "postgres/obstacles.h"

/* The wal_level of the publisher, if it is too low. From PostgreSQL 19 on the first logical slot
 * raises the level from replica to logical (effective_wal_level), and the last one that goes lowers
 * it again. */
Obstacles find_low_wal_level(Connection& publisher);
