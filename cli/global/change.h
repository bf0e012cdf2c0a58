/* A change of global tables on one server: the SQL runs in a session of their owner, in a
 * transaction that ends when all servers have the change. */

#pragma once

#include <string>

#include "postgres/connection.h"

/* A change of global run that is on the writer, and was not seen on all followers. It is the
 * comment on the publication, written in the transaction of the change. The comment on the
 * subscription of a follower that has it begins with the same ID, and is written in the transaction
 * there. */
struct PendingChange {
    std::string id{}; /* empty: there is none */
    std::string sql{};
};
/* The text of such a comment, and its parts. */
std::string comment_of(const PendingChange& change);
PendingChange change_of(const std::string& comment);

/* Starts the process of the session, which begin_change() uses: it takes some milliseconds, and
 * nobody waits meanwhile. */
void prepare_change(Connection& connection, const std::string& tables, const std::string& given);

/* Begins the session in a transaction of the connection, and locks the tables there against
 * writes: those that the role may change. Their names lead to the tables then, until the end.
 * tables: their OIDs, an array of SQL, as they were when the command began. given: a role, or empty
 * for the owner of all tables; a Failure if they belong to several. */
void begin_change(Connection& connection, const std::string& tables, const std::string& given);

/* The SQL, and all constraints and triggers that it has deferred. Names need their schema. */
void run_change(Connection& connection, const std::string& sql);
