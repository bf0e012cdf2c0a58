/* The output of run --json. */

#pragma once

#include <mutex>

#include "base/shard_states.h"

/* Prints the states that are final, a line of JSON each. Each line is flushed, so that a program
 * sees the shards as they are done, and has them if the command is killed. */
class Reporter
{
public:
    /* Without json it prints nothing. */
    explicit Reporter(bool json) : json_(json) {}

    void print(const ShardState& state);

private:
    const bool json_;
    std::mutex printing_;
};
