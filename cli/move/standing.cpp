#include "move/standing.h"

Standing::Standing(Servers& servers, const Move& move)
    : source(read_state(servers.source, move)), target(read_state(servers.target, move))
{
}

bool Standing::is_followed() const
{
    return is_at(source, Step::ready) && source->is_way_back;
}

bool Standing::has_begun() const
{
    /* At the step moved the target is the old source of an earlier move, which is done. */
    if (!source)
        return target && target->step != Step::moved;
    /* finish() writes this step before it removes the state of the target. */
    if (source->step == Step::moved)
        return target.has_value();
    /* A way back is the end of a move, until an undo changes the step of the target. */
    return !is_followed() || (target && target->step != Step::prepared);
}

bool Standing::has_way_back() const
{
    return is_followed() && is_at(target, Step::prepared);
}

bool Standing::is_being_undone() const
{
    return has_begun() && source && !source->is_of_source() && target && target->is_of_source();
}

void Standing::require_same_servers(const Servers& servers, const Move& move) const
{
    /* The IDs, too: the same two servers may have made several moves of the shard. */
    const bool is_one_move = !source || !target || source->id == target->id;
    /* Servers are compared as the text host:port/database: another name of the same server is
     * refused, and the hint says which names to give. */
    const auto require = [&](const std::optional<MoveState>& state, bool is_source,
                             const Connection& here, const Connection& other) {
        if (state &&
            (state->other != other.address() || state->is_of_source() != is_source || !is_one_move))
            throw Failure("schema " + move.name + " on " + here.server() +
                          " is of another move, with server " + visible(state->other) +
                          "\nHINT:  Give --from and --to as they were given when it began.");
    };
    require(source, true, servers.source, servers.target);
    require(target, false, servers.target, servers.source);
    /* A lost target may have opened the shard and taken writes: neither going on nor going back is
     * safe. */
    if (is_at(source, Step::fenced) && !target)
        throw Failure("the source is fenced, and schema " + move.name + " is not on " +
                      servers.target.server() +
                      ", so it is not known whether the shard is open there");
}
