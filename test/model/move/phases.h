/* The phase of the two records and the act of a verb, by the table of the command itself
 * (cli/fleet/phase.cpp). */
#pragma once

#include "guards.h"
#include "state.h"

#include "fleet/phase.h"

#include <optional>

namespace model::moves
{

inline ::Step step_of(const Record& record)
{
    return static_cast<::Step>(static_cast<int>(record.step) - 1);
}

inline std::optional<MoveState> move_state(const Record& record)
{
    if (record.step == RecordStep::none)
        return {};
    MoveState state = {};
    state.step = step_of(record);
    state.is_reverse = record.is_reverse;
    state.is_equal = record.is_equal;
    state.is_held = record.is_held;
    state.compared_at = record.is_compared ? "then" : "";
    return state;
}

/* The table, with an index for each record: phase_of() of the command makes strings. */
class Phases
{
public:
    Phases()
    {
        for (std::size_t i = 0; i < kRecords * kRecords; ++i)
            phases_[i] =
                phase_of(move_state(record_of(i / kRecords)), move_state(record_of(i % kRecords)));
    }

    Phase of(const Record& source, const Record& target) const
    {
        return phases_[index_of(source) * kRecords + index_of(target)];
    }

private:
    static constexpr std::size_t kRecords = 56; /* steps and none, each with three flags */

    static std::size_t index_of(const Record& record)
    {
        return static_cast<std::size_t>(record.step) * 8 + (record.is_reverse ? 4 : 0) +
               (record.is_equal ? 2 : 0) + (record.is_held && record.is_compared ? 1 : 0);
    }

    static Record record_of(std::size_t index)
    {
        Record record = {};
        record.step = static_cast<RecordStep>(index / 8);
        record.is_reverse = index / 4 % 2;
        record.is_equal = index / 2 % 2;
        record.is_held = record.is_compared = index % 2;
        return record;
    }

    Phase phases_[kRecords * kRecords];
};

/* Seen from this source. Without a record the server that has the shard tells it. */
inline Phase phase_of(const State& state, std::size_t source)
{
    static const Phases phases;
    const Phase phase =
        phases.of(state.servers[source].now.record, state.servers[1 - source].now.record);
    return phase == Phase::none && !state.servers[source].now.has_shard ? Phase::dropped : phase;
}

inline bool is_reversible(Verb verb)
{
    return verb == Verb::move_reversible || verb == Verb::undo_reversible || verb == Verb::hold;
}

inline bool is_undo(Verb verb)
{
    return verb == Verb::undo || verb == Verb::undo_reversible;
}

inline ::Verb verb_of(Verb verb)
{
    switch (verb) {
    case Verb::move:
    case Verb::move_reversible:
        return ::Verb::move;
    case Verb::hold:
        return ::Verb::hold;
    case Verb::cutover:
        return ::Verb::cutover;
    case Verb::resume:
        return ::Verb::resume;
    case Verb::abort:
        return ::Verb::abort;
    case Verb::undo:
    case Verb::undo_reversible:
        return ::Verb::undo;
    case Verb::complete:
        break;
    }
    return ::Verb::complete;
}

inline program::Wish wish_of(const Command& command)
{
    return {verb_of(command.verb), is_reversible(command.verb), command.giving_up};
}

inline bool is_possible(Act act)
{
    return act != Act::refuses && act != Act::objects && act != Act::nothing;
}

/* The servers are given as for the move, also for an undo. */
inline Act act_of(const State& state, Verb verb, std::size_t source, const Guards& guards)
{
    const Phase phase = phase_of(state, source);
    const Record& record = state.servers[source].now.record;
    if (!guards.reads_target && verb == Verb::abort && record.step == RecordStep::fenced)
        return Act::aborts;
    return act_of(phase, verb_of(verb));
}

} // namespace model::moves
