/* The fence of a move, over cutover/fence.h: on the source it is raised in the cutover. The target
 * is closed from the beginning. */

#pragma once

#include <set>
#include <string>

#include "base/clock.h"
#include "move/session.h"
#include "postgres/connection.h"

/* Puts the fence and the marker into the schema of the move, on either server. */
void make_fence(Connection& connection, const Move& move);
/* The fence of the target, closed before there are tables, in the transaction that makes the
 * record. Until close_target() the owners may make triggers that call it: closing_by_owner() is the
 * statement for their sessions, in each transaction that makes tables or sequences. So at no time
 * clients find the shards open. */
void make_closed_fence(Connection& target, const Move& move, const std::string& source,
                       const std::set<std::string>& owners);
std::string closing_by_owner(const Connection& target, const Move& move);
/* Closes the rest, in the transaction of the caller. */
void close_target(Connection& target, const Move& move, const std::set<std::string>& owners);
/* Until then the sessions that write the rows of the copy are let through. */
void end_copy(Connection& target, const Move& move, const std::string& source);

/* The fence during one try of the cutover. */
struct FenceTry {
    bool stands;             /* a command that was killed has raised it */
    std::string marker;      /* empty: it was not sent, so nobody opens the target */
    Clock::time_point start; /* writers have waited or failed since then */
};

/* MustStartAnew if a table of the shards is not published. */
void require_published_tables(Connection& source, const Move& move);

/* Closes the source, waits until everything that was written is committed, and sends the marker. If
 * the fence stands already, it only waits and sends. keeper: another connection to the source. Late
 * if a writer does not end by the deadline; MustStartAnew if a table is not published; Failure if a
 * subscription writes to one. */
void raise_fence(Connection& source, Connection& keeper, const Move& move,
                 const std::string& target, Clock::time_point deadline, FenceTry& fence);
