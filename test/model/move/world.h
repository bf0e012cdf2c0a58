/* Worlds: the commands that are given, and how much of everything may happen. Each is searched by
 * itself, because one with all of them would be too large. */
#pragma once

#include "state.h"

#include <vector>

namespace model::moves
{

struct Bounds {
    Byte writes;
    Byte draws;
    Byte commands;
    Byte kills;
    Byte crashes;
    Byte stalls;
    Byte losses;
};

struct World {
    const char* name;
    const char* text;
    Bounds bounds;
    Bounds deep; /* with --deep */
    std::vector<Verb> verbs;
    bool from_both = false; /* commands are given for either direction */
    bool loses_slot = false;
    bool loses_triggers = false;
};

inline std::vector<World> all_worlds()
{
    const std::vector<Verb> there = {Verb::move, Verb::resume, Verb::abort};
    const std::vector<Verb> back = {Verb::move_reversible, Verb::resume, Verb::abort, Verb::undo,
                                    Verb::complete};
    return {
        {"kill",
         "a move; the command is killed, its sessions end their statements later",
         {2, 1, 4, 2, 0, 0, 0},
         {3, 2, 5, 3, 0, 0, 0},
         there},
        {"crash", "a move; a server crashes", {2, 1, 3, 0, 1, 0, 0}, {2, 1, 4, 1, 2, 0, 0}, there},
        {"stall",
         "a move; a statement is late and is given up",
         {2, 1, 3, 0, 0, 1, 0},
         {2, 1, 4, 1, 1, 1, 0},
         there},
        {"back",
         "there and back; the command is killed",
         {2, 1, 4, 1, 0, 0, 0},
         {3, 1, 5, 2, 0, 0, 0},
         back},
        {"twice",
         "there and back; the command is killed twice",
         {0, 0, 4, 2, 0, 0, 0},
         {1, 1, 5, 3, 0, 0, 0},
         back},
        {"back crash",
         "there and back; a server crashes",
         {2, 0, 3, 0, 1, 0, 0},
         {2, 1, 5, 1, 1, 0, 0},
         back},
        {"again",
         "there, back with --reversible, and there again; from either side",
         {0, 0, 4, 1, 0, 0, 0},
         {2, 1, 5, 1, 0, 0, 0},
         {Verb::move_reversible, Verb::undo_reversible, Verb::move, Verb::undo, Verb::resume,
          Verb::abort, Verb::complete},
         true},
        {"held",
         "--hold and --cutover",
         {2, 1, 4, 1, 0, 0, 0},
         {2, 1, 5, 1, 1, 0, 0},
         {Verb::hold, Verb::cutover, Verb::resume, Verb::abort}},
        {"slot",
         "the slot is lost",
         {2, 0, 3, 1, 0, 0, 1},
         {2, 1, 4, 1, 1, 1, 1},
         there,
         false,
         true},
        {"triggers",
         "ALTER TABLE ... DISABLE TRIGGER ALL",
         {2, 0, 3, 1, 0, 0, 1},
         {2, 1, 4, 1, 1, 1, 1},
         there,
         false,
         false,
         true},
    };
}

inline State first_state(const Bounds& bounds)
{
    State state = {};
    Image& image = state.servers[0].now;
    image.has_shard = true;
    image.position = kFirst;
    state.servers[1].now.position = kFirst;
    for (Server& server : state.servers)
        server.disk = server.now;
    state.writes_left = bounds.writes;
    state.draws_left = bounds.draws;
    state.commands_left = bounds.commands;
    state.kills_left = bounds.kills;
    state.crashes_left = bounds.crashes;
    state.stalls_left = bounds.stalls;
    state.losses_left = bounds.losses;
    return state;
}

} // namespace model::moves
