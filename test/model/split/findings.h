/* The findings: promises about a shard that are broken. They are looked for after every step. */
#pragma once

#include "state.h"

namespace model::splits
{

enum class Finding : Byte { none, both_open, lost, id_twice, no_rest, left, stuck };

inline const char* text_of(Finding finding)
{
    switch (finding) {
    case Finding::none:
        return "nothing";
    case Finding::both_open:
        return "a shard is open on both servers";
    case Finding::lost:
        return "an acknowledged row is lost";
    case Finding::id_twice:
        return "an ID is drawn twice";
    case Finding::no_rest:
        return "no command leads to shards at rest";
    case Finding::left:
        return "at rest, something is left of the split";
    case Finding::stuck:
        return "at rest, a shard is open, and nothing can be drawn";
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

/* Where a shard is open, it has each acknowledged row. */
inline Finding look_at(const State& state)
{
    for (std::size_t number = 0; number < kShards; ++number) {
        const bool is_on_old = is_open(state, kOld, number);
        const bool is_on_standby = is_open(state, kStandby, number);
        if (is_on_old && is_on_standby)
            return Finding::both_open;
        const std::size_t server = is_on_old ? kOld : kStandby;
        if ((is_on_old || is_on_standby) &&
            (state.acknowledged[number] & ~state.servers[server].now.shards[number].rows) != 0)
            return Finding::lost;
    }
    return Finding::none;
}

} // namespace model::splits
