/* The objects that a move finds by its name: whether they are its own. See postgres/trust.h. */

#pragma once

#include <string>

#include "move/session.h"
#include "postgres/obstacles.h"

/* Before a move none of them is its own: schema, publication, subscription, slot. */
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
