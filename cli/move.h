/* A move of a shard from one server to another: what its steps share. */

#pragma once

#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "catalog.h"
#include "clock.h"
#include "verbs.h"

struct Move {
    /* Connects, and locks the shard on both sides. */
    explicit Move(const Options& move_options);

    std::optional<MoveState> source_state() { return state_of(source); }
    std::optional<MoveState> target_state() { return state_of(target); }
    Clock::time_point deadline() const;

    const Options& options;
    Connection source;
    Connection target;
    const Shard shard;
    const std::string name; /* snowflake_move_5: schemas, publication and subscription */
    const std::string slot; /* with the database in its name: slots are the whole cluster's */

private:
    std::optional<MoveState> state_of(Connection& connection) const;
};

/* Throws after Ctrl-C; between hold_interrupts() and heed_interrupts() Ctrl-C is not heard. */
void stop_if_interrupted();
void hold_interrupts();
void heed_interrupts();

/* The source's connection string for the target's server. */
std::string source_dsn(Move& move);

/* Steps of move_copy.cpp, in this order. Each does what is left of it. */
void prepare_source(Move& move);
void prepare_target(Move& move);
void await_copy(Move& move);
void finish_definition(Move& move);
void await_lag(Move& move);

/* What a move wrote besides its schemas; nothing is said where it is gone. */
void drop_subscription(Move& move);
void drop_slot_and_publication(Move& move);

/* Every reason why the shard cannot be moved, with the statement that mends it. */
std::vector<std::string> find_obstacles(Move& move);
/* Objects of other schemas that need one of the shard's, on the source. */
std::vector<std::string> find_dependents(Move& move);

/* Tables whose rows are not the same on both sides, with the range of the primary key. */
std::vector<std::string> compare_rows(Move& move, Connection& snapshot);

bool is_lock_error(const ServerError& error);

/* A transaction whose locks others may hold. It waits for them for a short time only, because
 * everybody else waits behind it, and tries again until the deadline. */
template <typename Work>
void lock_and_run(Connection& connection, Clock::time_point deadline, Work work)
{
    for (auto wait = std::chrono::milliseconds(50);; wait *= 2) {
        try {
            connection.run("BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = " +
                           std::to_string(wait.count()));
            work();
            connection.run("COMMIT");
            return;
        } catch (const ServerError& error) {
            connection.rollback();
            if (!is_lock_error(error) || Clock::now() + wait > deadline)
                throw;
        } catch (...) {
            connection.rollback();
            throw;
        }
        std::this_thread::sleep_for(wait);
    }
}
