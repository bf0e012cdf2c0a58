/* The findings of verify about the moves and the split of a server. */

#pragma once

#include <string>
#include <vector>

#include "postgres/connection.h"

struct MoveFinding {
    std::string kind;   /* leftover, reverse replication, fence, rows */
    std::string object; /* schema snowflake_move_5 */
    std::string problem;
    std::string hint; /* how to mend it */
};

/* Moves that are not at their end, and broken reverse replication. A shard that has left waits for
 * --complete, and is none of them. A move that is running is a leftover, too: its record does
 * not say whether the command lives. */
std::vector<MoveFinding> find_moves(Connection& connection);
