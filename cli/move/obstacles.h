/* All obstacles to a move at once, so that an operator mends them in one go. */

#pragma once

#include <string>
#include <vector>

#include "move/session.h"

/* One reason why a move would fail. A move begins only if there is none. */
struct Obstacle {
    std::string server; /* host:port/database; of a router its name */
    std::string problem;
    std::string hint; /* the statement or command that mends it */

    std::string text() const { return server + ": " + problem + "\n    HINT:  " + hint; }
};

/* The rows of a query with two columns: the problem and the hint. Names in them have no control
 * characters. */
std::vector<Obstacle> read_obstacles(Connection& connection, const std::string& sql,
                                     const std::vector<std::string>& parameters);

/* workers: those of the target. limits: a transaction that has run longer than the timeout is an
 * obstacle. Changes nothing: the definition is tried in a transaction
 * that is rolled back. Warnings tell of facts that stop no move. */
std::vector<Obstacle> find_obstacles(Servers& servers, const Move& move, const Workers& workers,
                                     const Limits& limits);

/* More obstacles, of --reversible alone. workers: those of the source. */
std::vector<Obstacle> find_obstacles_of_way_back(Servers& servers, const Move& move,
                                                 const Workers& workers, const Limits& limits);
