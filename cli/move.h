/* A move of a shard from one server to another: what its steps share. */

#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "catalog.h"
#include "clock.h"
#include "pgbouncer.h"
#include "verbs.h"

struct Move {
    /* Connects, and locks the shard on both sides. */
    explicit Move(const Options& move_options);

    std::optional<MoveState> source_state() { return state_of(source); }
    std::optional<MoveState> target_state() { return state_of(target); }
    Clock::time_point deadline() const;
    std::string title() const; /* shard 5, schema insta5 */
    /* Puts the name of the move in the place of @move@. */
    std::string sql(std::string text) const;

    const Options& options;
    Connection source;
    Connection target;
    std::optional<Connection> snapshot; /* of the target's rows when the switch opened it */
    const Shard shard;
    const std::string name; /* snowflake_move_5: schemas, publication and subscription */
    const std::string slot; /* with the database in its name: slots are the whole cluster's */
    PgBouncer bouncer;

private:
    std::optional<MoveState> state_of(Connection& connection) const;
};

/* Makes the schema of a move, on either side:
 *
 *   state     one row: what this side is at
 *   marker    published; a row of it says that everything before it has been replicated, and
 *             carries the positions of the shard's sequences
 *   undo      the statements that lift the fence
 *   close()   raises the fence in the transaction that calls it, and returns the positions
 *   reopen()  lifts it */
extern const char* const kMoveSchema;

/* Throws after Ctrl-C. It is not called during the switch and behind it. */
void stop_if_interrupted();

/* The shard's tables of these kinds (r: with rows, p: partitioned), as SQL writes their names. */
std::vector<std::string> tables_of(Connection& connection, const Shard& shard,
                                   const std::string& kinds = "r");

/* The statement that subscribes the target to the source. options: slot_name = ..., and others. */
std::string subscription_sql(Move& move, const std::string& options);

/* Every reason why the shard cannot be moved, with the statement that mends it. */
std::vector<std::string> find_obstacles(Move& move);
/* Objects of other schemas that need one of the shard's, on the source. */
std::vector<std::string> find_dependents(Move& move);

/* The steps before the switch, in this order. Each does what is left of it. */
void prepare_source(Move& move);
void prepare_target(Move& move);
void await_copy(Move& move);
void finish_definition(Move& move);
void await_lag(Move& move);

/* Returns when the target is open; an error if it is not after several tries. */
void switch_over(Move& move);
/* Opens the source again. The target must not be open, and be locked. */
void lower_fence(Move& move);

/* Tables whose rows are not the same on both sides, with the range of the primary key. */
std::vector<std::string> compare_rows(Move& move);

/* Nothing is said where these are gone. The schema of the move is dropped on one side. */
void drop_subscription(Move& move);
void drop_slot_and_publication(Move& move);
void drop_state(Move& move, Connection& connection);

/* The SQLSTATE of a lock that was not had in time. */
inline const std::string kLockTimeout = "55P03";

/* A transaction whose locks others may hold. It waits for them for a short time only, because
 * everybody else waits behind it, and tries again until the deadline. */
void lock_and_run(Connection& connection, Clock::time_point deadline,
                  const std::function<void()>& work);
