/* Reasons why a move or a split would fail. All are collected before it begins, so that an operator
 * can remove them together. */

#pragma once

#include <string>
#include <vector>

#include "postgres/connection.h"

struct Obstacle {
    std::string server; /* host:port/database; of a router its name */
    std::string problem;
    std::string hint; /* the statement or command that mends it */

    std::string text() const { return server + ": " + problem + "\n    HINT:  " + hint; }
};

struct Obstacles : std::vector<Obstacle> {
    using std::vector<Obstacle>::vector;

    void add(const std::string& server, const std::string& problem, const std::string& hint)
    {
        push_back({server, problem, hint});
    }
    void add(const Obstacles& more) { insert(end(), more.begin(), more.end()); }
    /* The rows of a query with two columns: the problem and the hint. Names in them have no control
     * characters. */
    void read(Connection& connection, const std::string& sql,
              const std::vector<std::string>& parameters = {});
    /* Throws the first one as a Failure, if there is one. */
    void raise_first() const;
};

/* Prints them; the exit code. */
int print_obstacles(const Obstacles& obstacles, bool json);
