/* The state after an action. */
#pragma once

#include "actions.h"

namespace model::moves
{

inline Finding apply(State& state, Action action, const Guards& guards)
{
    switch (action.kind) {
    case Kind::begin:
        --state.commands_left;
        begin(state, action.who, static_cast<Verb>(action.what), guards);
        break;
    case Kind::step:
        do_step(state, guards);
        break;
    case Kind::late:
        --state.stalls_left;
        be_late(state, guards);
        break;
    case Kind::kill:
        --state.kills_left;
        end_sessions(state);
        break;
    case Kind::kill_late:
        --state.kills_left;
        leave_running(state);
        end_sessions(state);
        break;
    case Kind::end_late:
        end_late(state, action.who, guards);
        break;
    case Kind::drop_late:
        if (state.running[action.who].step == Step::end_sequences)
            state.servers[action.who].is_sequence_locked = false;
        leave_none(state, action.who);
        break;
    case Kind::keep_late:
        run_statement(state, state.keeping, guards);
        leave_no_keeper(state);
        break;
    case Kind::drop_keep:
        leave_no_keeper(state);
        break;
    case Kind::apply:
        apply_next(state, action.who);
        break;
    case Kind::flush:
        flush(state, action.who);
        break;
    case Kind::crash:
        --state.crashes_left;
        crash(state, action.who);
        break;
    case Kind::write:
        return write(state, action.who, action.what);
    case Kind::commit:
        commit_client(state, action.who);
        break;
    case Kind::draw:
        --state.draws_left;
        return draw(state, action.who);
    case Kind::lose_slot:
        --state.losses_left;
        state.servers[action.who].slot.is_lost = true;
        break;
    case Kind::lose_triggers:
        --state.losses_left;
        state.servers[action.who].now.has_triggers = false;
        flush(state, action.who);
        break;
    }
    return Finding::none;
}

} // namespace model::moves
