/* Logical replication that is not of the move, and reads the shards' tables or writes into them. */

#pragma once

#include "move/session.h"
#include "postgres/obstacles.h"

/* Warns of publications that have the tables, on either server, and of slots whose readers get
 * their changes. */
void tell_of_readers(Servers& servers, const Shards& shards);

/* Subscriptions that write into the tables: their workers fire no trigger FOR EACH STATEMENT, so
 * the fence would not stop them. */
Obstacles find_writing_subscriptions(Connection& connection, const Move& move);
/* The same, on both servers for an undo, whose target has the tables, too. */
Obstacles find_writing_subscriptions(Servers& servers, const Move& move);
