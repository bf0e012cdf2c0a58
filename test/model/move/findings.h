/* The findings: promises about a shard that are broken. They are looked for after every step. */
#pragma once

#include "state.h"

namespace model::moves
{

enum class Finding : Byte { none, both_open, lost, doubled, id_twice, no_rest, left, stuck };

inline const char* text_of(Finding finding)
{
    switch (finding) {
    case Finding::none:
        return "nothing";
    case Finding::both_open:
        return "the shard is open on both servers";
    case Finding::lost:
        return "an acknowledged row is lost";
    case Finding::doubled:
        return "a row is there twice";
    case Finding::id_twice:
        return "an ID is drawn twice";
    case Finding::no_rest:
        return "no command leads to a shard at rest";
    case Finding::left:
        return "at rest, something is left of the move";
    case Finding::stuck:
        return "at rest, the shard is open, and nothing can be drawn";
    }
    return "";
}

inline bool is_broken_promise(Finding finding)
{
    return finding != Finding::none;
}

/* Of the servers as they are; the others take commands that do not lead to a rest. */
inline bool is_at_once(Finding finding)
{
    return finding != Finding::none && finding < Finding::no_rest;
}

/* Where the shard is open, it has each acknowledged row once. */
inline Finding look_at(const State& state)
{
    bool is_somewhere = false;
    for (const Server& server : state.servers) {
        for (const Byte count : server.now.rows)
            if (count > 1)
                return Finding::doubled;
        if (!is_open(server.now))
            continue;
        if (is_somewhere)
            return Finding::both_open;
        is_somewhere = true;
        for (std::size_t i = 0; i < kRows; ++i)
            if ((state.acknowledged >> i & 1) && server.now.rows[i] == 0)
                return Finding::lost;
    }
    return Finding::none;
}

} // namespace model::moves
