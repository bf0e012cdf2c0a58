/* A verb that the phase of the move does not allow, and the next commands. */

#include "base/quoting.h"
#include "move/command.h"
#include "postgres/dsn.h"
#include "postgres/identity.h"

InTransit MoveCommand::in_transit(const Standing& now)
{
    const bool by_source = now.source().has_value();
    const MoveState& state = by_source ? *now.source() : *now.target();
    std::string from = without_secrets(options_.from);
    std::string to = without_secrets(options_.to);
    const Phase phase = now.phase();
    /* The shard of an undone move can have moved on. --complete takes any server that has it. */
    if (phase != Phase::undone && phase != Phase::unequal &&
        !is_address_of(state.other, by_source ? target_ : source_))
        (by_source ? to : from) = state.other.uri();
    if (phase == Phase::opposite)
        return ::in_transit(state, phase_of(now.target(), now.source()), to, from);
    return ::in_transit(state, phase, from, to);
}

std::string MoveCommand::next()
{
    const Standing now = standing();
    return now.source() || now.target() ? next_command(in_transit(now)) : "";
}

std::string MoveCommand::hint(const Standing& now)
{
    if (now.source() || now.target()) {
        const std::string next = next_commands(in_transit(now));
        return next.empty() ? "" : "\nHINT:  " + next;
    }
    return how_to_begin();
}

/* A command that was killed early, or has failed, has left nothing. */
std::string MoveCommand::how_to_begin() const
{
    return "\nHINT:  Nothing has begun, or all has been ended: " +
           move_command(move_.shards, without_secrets(options_.from), without_secrets(options_.to),
                        "") +
           ", with the options of the move, begins one.";
}

/* Only a move leads the shard back: from the target, or, as an undo takes the servers, from the
 * source. */
std::string MoveCommand::how_to_move_back(const Standing& now)
{
    const bool has_copy = now.source() || now.target();
    return (has_copy ? hint(now) + " Then " : "\nHINT:  ") +
           move_command(move_.shards,
                        without_secrets(verb() == Verb::undo ? options_.from : options_.to),
                        without_secrets(verb() == Verb::undo ? options_.to : options_.from), "") +
           (move_.is_one() ? " moves the shard back." : " moves the shards back.");
}

void MoveCommand::require_same_servers(const Standing& now)
{
    const Phase phase = now.phase();
    const bool is_other = phase == Phase::faulty || phase == Phase::opposite;
    const auto require = [&](const std::optional<MoveState>& state, const Connection& here,
                             Connection& other) {
        if (state && (is_other || !is_address_of(state->other, other)))
            throw Failure(
                "schema " + move_.name + " on " + here.server() +
                " is of another move, with server " + visible(state->other.text()) + "\nHINT:  " +
                next_commands(::in_transit(*state, here.address().uri(), state->other.uri())));
    };
    require(now.source(), source_, target_);
    require(now.target(), target_, source_);
}

/* Why, with the next commands; empty where the state says it. */
std::string MoveCommand::reason(const Standing& now, program::Refusal refusal)
{
    using program::Refusal;
    const std::string not_ended = "the move is not at its end";
    const std::string no_reverse =
        "there is no reverse replication from " + source_.server() + ": ";
    const std::string no_move = "there is no move of " + move_.title() + ", to be ";
    switch (refusal) {
    case Refusal::nothing_to_undo:
        return move_.title() + (move_.is_one() ? ", is" : " are") + " at " + target_.server() +
               ", and " + source_.server() + " has no record of a move: there is nothing to undo";
    case Refusal::no_reverse:
        return no_reverse + "the move was made without --reversible" + how_to_move_back(now);
    case Refusal::not_yet_reverse:
        return no_reverse + not_ended + hint(now);
    case Refusal::not_moved:
        return move_.title() + " of " + source_.server() + (move_.is_one() ? ", has" : " have") +
               " not been moved" + hint(now);
    case Refusal::not_ended:
        return not_ended + hint(now);
    case Refusal::opened:
        return (move_.is_one() ? "the shard is open on " : "the shards are open on ") +
               target_.server() + hint(now);
    case Refusal::has_moved:
        return no_move + "aborted" + how_to_move_back(now);
    case Refusal::not_to_abort:
        return no_move + "aborted" + hint(now);
    case Refusal::not_to_resume:
        return no_move + "resumed" + hint(now);
    /* A lost target may have opened the shard and taken writes: neither going on nor going back is
     * safe. */
    case Refusal::unknown:
        return "the source is fenced, and schema " + move_.name + " is not on " + target_.server() +
               ", so it is not known whether the shard is open there";
    default:
        return describe(in_transit(now));
    }
}

void MoveCommand::refuse(const Standing& now, program::Refusal refusal)
{
    if (refusal == program::Refusal::nothing_to_undo)
        require_there();
    if (refusal == program::Refusal::unknown || refusal == program::Refusal::other_move)
        require_same_servers(now);
    throw Failure(reason(now, refusal));
}
