/* The objects of a move that carry its rows: publication and slot on the source, subscription on
 * the target. */

#pragma once

#include <functional>
#include <string>

#include "cutover/cutover.h"
#include "move/session.h"
#include "postgres/obstacles.h"
#include "replication/slots.h"
#include "replication/subscription.h"

void make_publication(Connection& source, const Move& move);

/* Drops a slot of this name that no subscription reads, before one is made: a killed command has
 * left it, or somebody else has made it. */
void drop_unread_slot(Connection& publisher, const Move& move);
/* MustStartAnew if it is gone: a new slot would begin later, and the changes in between would be
 * lost. */
void require_slot(Connection& source, const Move& move);

/* Waits for something that the subscription does. A worker that fails tries again for ever, and
 * says why in the log of its server alone. MustStartAnew if the slot is lost, or if the worker
 * fails and the definition has changed since it was copied. */
void await_replication(Servers& servers, const Move& move, const std::function<bool()>& is_done);

/* Writes a row that comes through the stream, and returns its ID in the marker's table. */
std::string send_probe(Connection& source, const Move& move);

/* These remove objects. Missing objects are passed over, because the removal can be interrupted and
 * repeated. */

/* A Failure if the subscription is of another role. */
void drop_subscription(Connection& target, const Move& move, Clock::time_point deadline);
/* Takes the tables out of the publication before. A ServerError if the slot is still in use at the
 * deadline. */
void drop_slot_of(Connection& source, const Move& move, Clock::time_point deadline);
/* One of another role stays, with a warning. */
void drop_publication(Connection& source, const Move& move);
/* The schema of the move, on one side, and the fence with it: the last step there, because the
 * record of the move is in it. Late if others lock a table for longer than --timeout. */
void drop_state(Connection& connection, const Move& move, const Limits& limits);

/* Whether the objects that a move finds by its name are its own: see postgres/trust.h. Before a
 * move none of them is its own: schema, publication, subscription, slot. */
Obstacles find_taken_names(Connection& connection, const Move& move);

/* The publication or subscription of the move's name. problem: a role made it that is not trusted;
 * with the statement that removes it. */
struct Named {
    bool is_there;
    std::string problem;

    /* False if it is not there; a Failure if it has a problem. */
    bool is_own() const;
};
Named find_publication(Connection& publisher, const Move& move);
Named find_subscription(Connection& subscriber, const Move& move);

/* MustStartAnew if it is gone, or has not all rows of tables that are named; a Failure if it is not
 * the move's own. */
void require_own_publication(Connection& publisher, const Move& move);

/* A table to which the subscription writes, and which is neither the marker nor a table of the
 * shard; empty if there is none. The tables of a publication are found by their names on the
 * subscriber, where the worker may write to any table. An owner can rename a published one. */
std::string find_foreign_table(Connection& subscriber, const Move& move);

/* The subscription has found the marker in the publication. Where its connection string leads to a
 * server that lacks the publication, CREATE SUBSCRIPTION warns only. */
bool has_found_publication(Connection& subscriber, const Move& move);
