/* The fence: no row and no ID is made behind it, by anybody. Readers are not blocked. */

#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "move/session.h"
#include "postgres/connection.h"

/* Puts the fence into the schema of the move, on either server. It does not stand yet. */
void make_fence(Connection& connection, const Move& move);

/* The statements that make its triggers, one for each table. firing: "ALWAYS" stops a session with
 * session_replication_role = replica, too; "" lets it through. */
std::vector<std::string> fence_triggers(Connection& connection, const Move& move,
                                        const std::string& firing);

/* The parts of the fence, and its end, in a transaction of the caller. A client that writes gets
 * the problem as an error, with the place as its detail. */
void close_shard(Connection& connection, const Move& move, const std::string& problem,
                 const std::string& place);
/* Returns the positions of the sequences. */
std::string stop_sequences(Connection& connection, const Move& move);
void reopen_shard(Connection& connection, const Move& move);

/* The fence during one try of the cutover. */
struct Fence {
    bool stands;             /* a command that was killed has raised it */
    std::string marker;      /* empty: it was not sent, so nobody opens the target */
    Clock::time_point start; /* writers have waited or failed since then */
};

/* MustStartAnew if a table of the shards is not published. */
void require_published_tables(Connection& source, const Move& move);

/* Makes the triggers on the source, while clients write. Late if a lock was not had by the
 * deadline; it may be repeated. */
void prepare_fence(Connection& source, const Move& move, Clock::time_point deadline);
/* Closes the source, waits until everything that was written is committed, and sends the marker. If
 * the fence stands already, it only waits and sends. Late if a writer does not end by the deadline;
 * MustStartAnew if a table is not published. */
void raise_fence(Connection& source, const Move& move, const std::string& target,
                 Clock::time_point deadline, Fence& fence);
/* Opens the source again. The target must not be open, and be locked. An error says that the fence
 * still stands. Does nothing if no fence stands. */
void lower_fence(Connection& source, const Move& move, Clock::time_point deadline);
