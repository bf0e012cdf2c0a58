/* Reverse replication of a move: when the shard is open on the target, the source follows it by
 * logical replication, closed to everybody else. That is the state of a prepared move in the other
 * direction, and --undo is its cutover. */

#pragma once

#include <string>

#include "cutover/cutover.h"
#include "move/session.h"
#include "routers/routing.h"

/* Makes the publication and slot on the target, before the fence. A slot waits for running
 * transactions, so it is not made while writes are blocked. */
void prepare_reverse(Connection& target, const Move& move);
/* Does the part of steps::subscribe_back() that can be rolled back, and checks the rest, after
 * prepare_reverse() and before the fence. The copy may have taken hours. Failure if there is an
 * obstacle. */
void try_reverse(Servers& servers, const Move& move, const std::string& publisher);
/* The rest of reverse replication, if the command was killed between the two commits of its steps
 * (run.h). */
void finish_reverse(Connection& target, Connection& source, const Move& move);
