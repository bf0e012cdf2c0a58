/* The end of a command that works on shards: the state of each. */

#pragma once

#include <string>
#include <vector>

#include "base/shards.h"

/* The result of a command for a shard. error is why the shard was not done, or empty. Only run
 * fills server and sqlstate. */
struct ShardState {
    Shard shard;
    std::string state; /* done, failed, not done ... */
    std::string error;
    std::string server{};
    std::string sqlstate{};
    std::string next{}; /* the next command of a move or split, if there is one */
};

/* 3 if a shard has failed or is not done. */
int exit_code_of(const std::vector<ShardState>& states);

/* The errors and the shards of each state, or JSON. Returns the exit code. */
int print_states(const std::vector<ShardState>& states, bool json);
