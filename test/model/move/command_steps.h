/* A step of the command: whether it is possible, its statement, and its failure. */
#pragma once

#include "statements.h"
#include "view.h"

namespace model::moves
{

inline Server& source_of(State& state)
{
    return state.servers[state.command.from];
}

/* Sessions of the command end. Transactions that are open in them are rolled back, but a statement
 * that runs ends first. */
inline void end_sessions(State& state)
{
    for (std::size_t i = 0; i < kServers; ++i)
        if (state.running[i].step != Step::end_sequences)
            state.servers[i].is_sequence_locked = false;
    state.is_left = {state.running[0].step != Step::none, state.running[1].step != Step::none};
    state.is_keeper_left = state.keeping.step != Step::none;
    state.command = {};
}

/* The last statement of the session that this one needs has not ended. */
inline bool is_busy(const State& state, Statement sent)
{
    const std::size_t server = server_of(sent);
    switch (row_of(sent.step).side) {
    case Side::source:
    case Side::target:
        return state.running[server].step != Step::none && !state.is_left[server];
    case Side::keeper:
        return state.keeping.step != Step::none && !state.is_keeper_left;
    default:
        return false;
    }
}

inline bool has_session(const State& state, std::size_t server)
{
    return !(state.command.lost_sessions >> server & 1);
}

inline Byte writers_on(const State& state, std::size_t server)
{
    Byte writers = 0;
    for (std::size_t i = 0; i < kClients; ++i)
        if (state.clients[i].is_writing && state.clients[i].server == server)
            writers = static_cast<Byte>(writers | 1U << i);
    return writers;
}

inline Byte value_of(const State& state, const Command& command, Step step)
{
    switch (step) {
    case Step::keep_options:
    case Step::make_source:
        return static_cast<Byte>(is_reversible(command.verb) | (command.verb == Verb::hold) << 1);
    case Step::copy_rows:
        return command.snapshot;
    case Step::keep_positions:
        return command.position;
    case Step::send_marker:
        return static_cast<Byte>(state.last_marker + 1);
    case Step::write_moved:
        return command.has_opened;
    case Step::drop_closed:
    case Step::drop_closed_alone: /* of a move that came back the target is closed */
        return is_open(state.servers[command.from].now);
    default:
        return 0;
    }
}

inline Statement statement_of(const State& state)
{
    const Command& command = state.command;
    return {command.at, command.from, value_of(state, command, command.at)};
}

/* Whether the statement would end now. Else the command waits. */
inline bool can_end(const State& state, const Guards& guards)
{
    const Command& command = state.command;
    const Statement sent = statement_of(state);
    const Server& source = state.servers[command.from];
    const Image& target = state.servers[1 - command.from].now;
    if (is_busy(state, sent))
        return false;
    switch (sent.step) {
    case Step::make_slot:
    case Step::make_triggers:
        return writers_on(state, command.from) == 0;
    case Step::back_slot:
        return writers_on(state, 1U - command.from) == 0;
    case Step::pause:
        return !state.clients[0].is_writing;
    case Step::await_writers:
        return (writers_on(state, command.from) & command.writers) == 0;
    case Step::begin_opening: /* the keeper of this command has its lock */
        return !guards.locks_keeper || !state.is_keeper_left;
    case Step::await_marker:
        return guards.marker_is_of_fence ? target.marker == source.now.record.marker
                                         : target.marker != 0;
    case Step::drop_closed:
    case Step::drop_closed_alone:
        return writers_on(state, server_of(sent)) == 0;
    default:
        return true;
    }
}

inline bool is_of_cutover(Step step)
{
    return step >= Step::make_triggers && step <= Step::write_opened;
}

/* The session was lost, or the statement is late. */
inline void fail(State& state, bool is_late, const Guards& guards)
{
    constexpr Byte kTries = 2; /* one less than those of the command */
    Command& command = state.command;
    const bool is_retried = is_late && command.tries + 1 < kTries;
    if (!is_of_cutover(command.at) || command.is_final || !has_session(state, command.from)) {
        end_sessions(state);
        return;
    }
    if (state.running[command.from].step != Step::end_sequences)
        source_of(state).is_sequence_locked = false;
    command.giving_up = is_retried ? GivingUp::to_try_again : GivingUp::to_end;
    command.has_opening = 0;
    command.writers = command.position = 0;
    command.at = first_of_lowering(state, guards);
}

/* Behind a step: the next one, or the end. */
inline void go_on(State& state, const Guards& guards)
{
    Command& command = state.command;
    if (command.at == Step::resume_clients && command.giving_up == GivingUp::to_try_again) {
        ++command.tries;
        command.at = next_step(state, guards);
        command.giving_up = GivingUp::no;
        return;
    }
    command.at = next_step(state, guards);
    if (command.at == Step::done || command.at == Step::failed)
        end_sessions(state);
}

/* The part of a step that is not on a server. */
inline void note_step(State& state, const Guards& guards)
{
    Command& command = state.command;
    Server& source = source_of(state);
    switch (command.at) {
    case Step::make_slot:
    case Step::copy_rows:
        if (guards.snapshot_is_of_slot == (command.at == Step::make_slot)) {
            command.snapshot = 0;
            for (std::size_t i = 0; i < kRows; ++i)
                if (source.now.rows[i] != 0)
                    command.snapshot = static_cast<Byte>(command.snapshot | 1U << i);
        }
        break;
    case Step::begin_opening:
        command.has_opening = true;
        break;
    case Step::note_writers:
        command.writers = writers_on(state, command.from);
        break;
    case Step::await_writers:
        command.writers = 0;
        break;
    case Step::read_sequences:
        source.is_sequence_locked = guards.locks_sequence;
        command.position = source.now.is_at_end ? kEnd : source.now.position;
        break;
    case Step::pause:
        state.is_paused = true;
        break;
    case Step::resume_clients:
        state.is_paused = false;
        break;
    case Step::lead:
        state.is_paused = false;
        state.leads_to = static_cast<Byte>(1 - command.from);
        break;
    default:
        break;
    }
}

inline void note_end(State& state)
{
    Command& command = state.command;
    switch (command.at) {
    case Step::copy_rows:
        command.snapshot = 0;
        break;
    case Step::end_sequences:
        source_of(state).is_sequence_locked = false;
        command.position = 0;
        break;
    case Step::send_marker:
        ++state.last_marker;
        break;
    case Step::open:
        command.has_opened = true;
        command.has_opening = 0;
        command.is_final = 0;
        break;
    default:
        break;
    }
}

/* The step ends, and its answer comes. */
inline void do_step(State& state, const Guards& guards)
{
    const Statement sent = statement_of(state);
    const Side side = row_of(sent.step).side;
    const std::size_t server = server_of(sent);
    if (side != Side::routers && !has_session(state, server)) {
        fail(state, false, guards);
        return;
    }
    if (sent.step == Step::await_writers && guards.looks_at_triggers &&
        !source_of(state).now.has_triggers) {
        fail(state, true, guards);
        return;
    }
    note_step(state, guards);
    /* The snapshot may be of this moment. */
    run_statement(state, statement_of(state), guards);
    note_end(state);
    go_on(state, guards);
}

} // namespace model::moves
