/* The findings of verify about the moves of a server. */

#pragma once

#include <string>
#include <vector>

#include "postgres/connection.h"

struct MoveFinding {
    std::string kind; /* leftover, way back, rows */
    std::string object;
    std::string problem;
    std::string hint;
};

/* Moves that are not at their end, and ways back that are broken. A shard that has left waits for
 * --drop-source, and is none of them. */
std::vector<MoveFinding> find_moves(Connection& connection);
