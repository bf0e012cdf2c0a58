/* Shared by the steps of a move: its names, its two servers, and its limits. */

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "postgres/catalog.h"

/* The moved shard, and the names of the objects of its move on both servers. */
struct Move {
    Shard shard;
    std::string name; /* snowflake_move_5: schemas, publication and subscription */
    /* On the source; and on the target, for the way back. Names of slots are of a whole cluster,
     * and both servers can be databases of one. */
    std::string slot;
    std::string back_slot;

    std::string title() const; /* shard 5, schema insta5 */
    /* SHARD=5, SCHEMA=insta5 */
    std::vector<std::string> variables() const;
    /* Puts the name of the move in the place of @move@. */
    std::string sql(std::string text) const;
};

/* The move in the other direction: the same names, and the slots exchanged. */
Move opposite(const Move& move);

struct Servers {
    Servers(const std::string& from, const std::string& to);

    Connection source;
    Connection target;
};

struct Limits {
    std::chrono::milliseconds timeout; /* how long writes may wait */
    std::int64_t max_lag;              /* bytes of WAL that are left when the switch begins */

    /* Counted from the call: lower_fence() has a deadline of its own when a try was late. */
    Clock::time_point deadline() const { return Clock::now() + timeout; }
};

/* The workers of a subscription; see workers.h. */
struct Workers {
    std::string dsn;            /* of the publisher, as the subscriber's server reaches it */
    bool trusts_owners = false; /* they may run code of the owners with the rights of this role */
};

/* --resume would fail in the same way. So the error gets no hint to --resume. */
struct MustStartAnew : Failure {
    explicit MustStartAnew(const std::string& problem, const std::string& details = "")
        : Failure(problem + ". Start anew: --abort" + details)
    {
    }
};

/* Nothing that a role or the environment has set may end the statements of a move, or make its
 * commits unsafe. */
void withstand_settings(Connection& connection);

/* One command at a time has the name on a server, until its connection ends. doing: for the error.
 */
void lock_name(Connection& connection, const std::string& name, const std::string& doing);

/* The slot of a move. It is the whole cluster's, so it has the database in its name. */
std::string name_slot(Connection& connection, const std::string& move);

/* Until the transaction ends, statements come into no log and no statistics: they hold a connection
 * string. Settings that the role may not change are left as they are. */
void hide_statements(Connection& connection);

/* Connects to both servers, and locks the shard on them, so that no other command moves it. */
struct Session {
    Session(const std::string& from, const std::string& to, const std::string& schema);

    Servers servers;
    const Move move;
};

/* The shard's tables of these kinds (r: with rows, p: partitioned), as SQL writes their names. */
std::vector<std::string> tables_of(Connection& connection, const Shard& shard,
                                   const std::string& kinds = "r");
