/* A state as the program of the command sees it (cli/program/view.h). */
#pragma once

#include "phases.h"

namespace model::moves
{

class StateView : public program::View
{
public:
    StateView(const State& state, std::size_t source)
        : state_(state), number_(source), source_(state.servers[source]),
          target_(state.servers[1 - source])
    {
    }

    Phase phase() const override { return phase_of(state_, number_); }
    program::Record source_record() const override { return seen(source_.now.record); }
    program::Record target_record() const override { return seen(target_.now.record); }
    bool has_slot() const override { return source_.slot.is_there && !source_.slot.is_lost; }
    bool has_back_slot() const override { return target_.slot.is_there && !target_.slot.is_lost; }
    bool has_follower() const override { return source_.now.subscription != Subscription::none; }

private:
    static program::Record seen(const Record& record)
    {
        if (record.step == RecordStep::none)
            return {};
        return {step_of(record), record.marker != 0, record.is_reversible != 0,
                record.is_reverse != 0, record.is_held != 0};
    }

    const State& state_;
    const std::size_t number_;
    const Server& source_;
    const Server& target_;
};

inline Step first_step(const State& state, Act act, const Guards& guards)
{
    const Command& command = state.command;
    return program::first(act, StateView{state, command.from}, wish_of(command), guards);
}

inline Step next_step(const State& state, const Guards& guards)
{
    const Command& command = state.command;
    return program::next(StateView{state, command.from}, wish_of(command), command.at, guards);
}

/* The cutover is given up. */
inline Step first_of_lowering(const State& state, const Guards& guards)
{
    return program::first_of_lowering(StateView{state, state.command.from}, guards);
}

} // namespace model::moves
