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
/* Does the part of make_reverse() that can be rolled back, and checks the rest, after
 * prepare_reverse() and before the fence. The copy may have taken hours. Failure if there is an
 * obstacle. */
void try_reverse(Servers& servers, const Move& move, const std::string& publisher);
/* Removes the prepared slot and publication; no error if they are gone. A slot that nobody reads
 * would keep WAL until the disk of the target is full. */
void discard_reverse(Connection& target, const Move& move, const Limits& limits);

/* The target is open, and replicates from the source no more. Returns why reverse replication is
 * not possible any more; else nothing. */
std::string make_reverse(Servers& servers, const Move& move, const std::string& publisher,
                         const Routing& routing, const Limits& limits);
/* The rest of that, if the command was killed between its two commits. */
void finish_reverse(Connection& target, Connection& source, const Move& move);
