/* Removes the objects of a move. Those that are gone are passed over, because a cleanup can be
 * interrupted and repeated. */

#pragma once

#include "move/session.h"

/* Before drop_slot_and_publication(): else the apply worker would connect to the slot again. A
 * Failure if the subscription is of another role. */
void drop_subscription(Connection& target, const Move& move);
/* A ServerError if the slot is still in use at the deadline. A publication of another role stays,
 * with a warning. */
void drop_slot_and_publication(Connection& source, const Move& move, Clock::time_point deadline);
/* The schema of the move, on one side, and the fence with it: the last step there, because the
 * record of the move is in it. Late if others lock a table for longer than --timeout. */
void drop_state(Connection& connection, const Move& move, const Limits& limits);
