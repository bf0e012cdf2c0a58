/* The switch of a move, and what follows it. */

#pragma once

#include "move.h"
#include "pgbouncer.h"

/* Returns when the target is open; an error if it is not after several tries. snapshot is a
 * connection to the target that keeps the rows as they were then. */
void switch_over(Move& move, PgBouncer& bouncer, Connection& snapshot);

/* Opens the source again. The target must not be open, and be locked. */
void lower_fence(Move& move);

/* Leads PgBouncer's clients to the target. */
void reroute(Move& move, PgBouncer& bouncer);

/* Drops the schema of the move on one side; one table is locked at a time. */
void drop_state(Move& move, Connection& connection);

/* Drops what the move has made, but for the fence. */
void clean_up(Move& move);
