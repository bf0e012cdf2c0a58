/* What is in the way of a move, all of it at once. */

#pragma once

#include <string>
#include <vector>

#include "move/session.h"

struct Obstacle {
    std::string server;
    std::string problem;
    std::string hint; /* what mends it */

    std::string text() const { return server + ": " + problem + "\n    HINT:  " + hint; }
};

/* The rows of a query whose columns are the problem, and what mends it. */
std::vector<Obstacle> read_obstacles(Connection& connection, const std::string& sql,
                                     const std::vector<std::string>& parameters);

/* source_dsn: the source as the target's server reaches it. */
std::vector<Obstacle> find_obstacles(Servers& servers, const Move& move,
                                     const std::string& source_dsn, const Limits& limits);

/* What is in the way of --reversible, besides. target_dsn: the target as the source's server
 * reaches it. */
std::vector<Obstacle> find_obstacles_of_way_back(Servers& servers, const Move& move,
                                                 const std::string& target_dsn,
                                                 const Limits& limits);
