/* The objects of a move that carry its rows: publication and slot on the source, subscription on
 * the target. */

#pragma once

#include <functional>
#include <string>

#include "cutover/cutover.h"
#include "move/session.h"
#include "replication/slot.h"
#include "replication/subscription.h"

/* The option of CREATE SUBSCRIPTION by which rows are copied and sent in the binary format, which
 * takes less of both servers; "" if a column may not be read by the other server as it was
 * written. */
std::string format_option(Servers& servers, const Move& move);

void make_publication(Connection& source, const Move& move);

/* Before anybody has subscribed: one that is there can begin later than the publication, or be of
 * somebody else, and is dropped. */
void make_slot_anew(Connection& publisher, const Move& move);
/* MustStartAnew if it is gone: a new slot would begin later, and the changes in between would be
 * lost. */
void require_slot(Connection& source, const Move& move);

/* Waits for something that the subscription does. A worker that fails tries again for ever, and
 * says why in the log of its server alone. MustStartAnew if the slot is lost, or if the worker
 * fails and the definition has changed since it was copied. */
void await_replication(Servers& servers, const Move& move, const std::function<bool()>& is_done);

/* Writes a row that comes through the stream, and returns its ID in the marker's table. */
std::string send_probe(Connection& source, const Move& move);

/* Disables the subscription, and returns when no worker of it runs. One that the launcher starts
 * later, because it has read the subscription before, ends before it locks a table. */
void stop_subscription(Servers& servers, const Move& move);

/* The removal of these objects. Those that are gone are passed over, because it can be interrupted
 * and repeated. */

/* A Failure if the subscription is of another role. */
void drop_subscription(Connection& target, const Move& move, Clock::time_point deadline);
/* A ServerError if the slot is still in use at the deadline. A publication of another role stays,
 * with a warning. */
void drop_slot_and_publication(Connection& source, const Move& move, Clock::time_point deadline);
/* The schema of the move, on one side, and the fence with it: the last step there, because the
 * record of the move is in it. Late if others lock a table for longer than --timeout. */
void drop_state(Connection& connection, const Move& move, const Limits& limits);
