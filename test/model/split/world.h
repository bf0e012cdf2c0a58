/* Worlds: how much of everything may happen in each. */
#pragma once

#include "state.h"

#include <vector>

namespace model::splits
{

struct Bounds {
    Byte writes;
    Byte draws;
    Byte commands;
    Byte kills;
    Byte crashes;
    Byte stalls;
    Byte promotions;
};

struct World {
    const char* name;
    const char* text;
    Bounds bounds;
    Bounds deep; /* with --deep */
    bool may_be_blind = false;
};

inline std::vector<World> all_worlds()
{
    return {
        {"split kill",
         "the command is killed, its sessions end their statements later",
         {1, 1, 3, 2, 0, 0, 0},
         {2, 1, 3, 2, 0, 0, 0},
         true},
        {"split crash",
         "a server crashes, the standby is started again",
         {1, 1, 3, 0, 1, 0, 0},
         {2, 1, 3, 0, 2, 0, 0}},
        {"restart",
         "the command is killed, and a server crashes",
         {1, 0, 3, 1, 1, 0, 0},
         {1, 1, 3, 2, 1, 0, 0},
         true},
        {"split stall",
         "a statement is late and is given up",
         {1, 1, 3, 0, 0, 1, 0},
         {2, 1, 3, 1, 0, 1, 0}},
        {"stray",
         "somebody else promotes the standby",
         {1, 1, 3, 1, 0, 0, 1},
         {2, 1, 3, 1, 0, 1, 1}},
    };
}

inline State first_state(const Bounds& bounds)
{
    State state = {};
    for (Server& server : state.servers) {
        for (Shard& shard : server.now.shards) {
            shard.is_there = true;
            shard.position = kFirst;
        }
        server.disk = server.now;
    }
    state.is_in_recovery = true;
    state.start = 1;
    state.writes_left = bounds.writes;
    state.draws_left = bounds.draws;
    state.commands_left = bounds.commands;
    state.kills_left = bounds.kills;
    state.crashes_left = bounds.crashes;
    state.stalls_left = bounds.stalls;
    state.promotions_left = bounds.promotions;
    return state;
}

} // namespace model::splits
