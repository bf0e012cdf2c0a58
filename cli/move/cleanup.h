/* Removes the objects of a move. Those that are gone are passed over, because a cleanup can be
 * interrupted and repeated. */

#pragma once

#include "move/session.h"

void drop_subscription(Connection& target, const Move& move);
void drop_slot_and_publication(Connection& source, const Move& move, Clock::time_point deadline);
/* The schema of the move, on one side, and the fence with it. */
void drop_state(Connection& connection, const Move& move, const Limits& limits);
