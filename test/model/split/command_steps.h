/* A step of the command: whether it is possible, its statement, and its failure. */
#pragma once

#include "program.h"

namespace model::splits
{

/* Sessions of the command end. Transactions that are open in them are rolled back, but a statement
 * that runs ends first. */
inline void end_sessions(State& state)
{
    if (state.running[kOld].step != Step::end_sequences)
        state.servers[kOld].is_sequence_locked = {};
    for (std::size_t i = 0; i < kServers; ++i)
        state.is_left[i] = state.running[i].step != Step::none;
    state.command = {};
}

inline bool has_session(const State& state, std::size_t server)
{
    return !(state.command.lost_sessions >> server & 1);
}

/* Of the shard that leaves, on the old server. */
inline Byte writers_of(const State& state)
{
    Byte writers = 0;
    for (std::size_t i = 0; i < kClients; ++i)
        if (state.clients[i].is_writing && state.clients[i].shard == kLeaves &&
            state.clients[i].server == kOld)
            writers = static_cast<Byte>(writers | 1U << i);
    return writers;
}

inline bool has_writers(const State& state, std::size_t server)
{
    for (const Client& client : state.clients)
        if (client.is_writing && client.server == server)
            return true;
    return false;
}

inline Statement statement_of(const State& state)
{
    const Command& command = state.command;
    switch (command.at) {
    case Step::keep_positions:
        return {command.at, command.position};
    case Step::seal:
        return {command.at, static_cast<Byte>(state.last_seal + 1)};
    case Step::note_request:
        return {command.at, command.start};
    default:
        return {command.at, 0};
    }
}

inline bool is_busy(const State& state, Statement sent)
{
    const std::size_t server = server_of(sent.step);
    return text_of(sent.step).side != Side::routers && state.running[server].step != Step::none &&
           !state.is_left[server];
}

/* Whether the statement would end now. Else the command waits. */
inline bool can_end(const State& state)
{
    const Statement sent = statement_of(state);
    if (is_busy(state, sent))
        return false;
    switch (sent.step) {
    case Step::make_triggers:
    case Step::drop_triggers:
        return !has_writers(state, kOld);
    case Step::pause:
        return !state.clients[0].is_writing;
    case Step::await_writers:
        return (writers_of(state) & state.command.writers) == 0;
    case Step::await_seal:
        return state.servers[kStandby].now.seal == state.servers[kOld].now.seal;
    case Step::await_promotion:
        return !state.is_in_recovery;
    case Step::drop_left_rows:
    case Step::drop_old_record:
        return !has_writers(state, kOld);
    case Step::drop_stayed_rows:
    case Step::drop_new_record:
        return !has_writers(state, kStandby);
    default:
        return true;
    }
}

inline bool is_of_cutover(Step step)
{
    return step >= Step::pause && step <= Step::note_request;
}

/* The session was lost, or the statement is late. */
inline void fail(State& state, bool is_late, const Guards& guards)
{
    constexpr Byte kTries = 2; /* one less than those of the command */
    Command& command = state.command;
    const bool is_given_up =
        is_of_cutover(command.at) || (!guards.commit_is_final && command.at == Step::request);
    if (!is_given_up || (command.is_final && guards.commit_is_final) || !has_session(state, kOld)) {
        end_sessions(state);
        return;
    }
    if (state.running[kOld].step != Step::end_sequences)
        state.servers[kOld].is_sequence_locked = {};
    command.giving_up =
        is_late && command.tries + 1 < kTries ? GivingUp::to_try_again : GivingUp::to_end;
    command.writers = command.position = 0;
    command.at = Program{state, guards}.lower_fence();
}

/* The part of a step that is not on a server. */
inline void note_step(State& state)
{
    Command& command = state.command;
    Server& old = state.servers[kOld];
    const Shard& leaves = old.now.shards[kLeaves];
    switch (command.at) {
    case Step::note_writers:
        command.writers = writers_of(state);
        break;
    case Step::await_writers:
        command.writers = 0;
        break;
    case Step::read_sequences:
        old.is_sequence_locked[kLeaves] = true;
        command.position = leaves.is_at_end ? kEnd : leaves.position;
        break;
    case Step::end_sequences:
        old.is_sequence_locked[kLeaves] = false;
        command.position = 0;
        break;
    case Step::seal:
        ++state.last_seal;
        break;
    case Step::read_start:
        command.start = state.start;
        break;
    case Step::note_request:
        command.is_final = true;
        break;
    case Step::pause:
        state.is_paused = true;
        break;
    case Step::resume_clients:
        state.is_paused = false;
        break;
    case Step::lead:
        state.is_paused = false;
        state.leads_to = kStandby;
        break;
    default:
        break;
    }
}

inline void do_step(State& state, const Guards& guards)
{
    Command& command = state.command;
    const Statement sent = statement_of(state);
    if (text_of(sent.step).side != Side::routers && !has_session(state, server_of(sent.step))) {
        fail(state, false, guards);
        return;
    }
    if (sent.step == Step::await_writers && !state.servers[kOld].now.shards[kLeaves].has_triggers) {
        fail(state, true, guards);
        return;
    }
    run_statement(state, sent, guards);
    note_step(state);
    const bool is_tried_again =
        sent.step == Step::resume_clients && command.giving_up == GivingUp::to_try_again;
    command.at = Program{state, guards}.following();
    if (is_tried_again) {
        ++command.tries;
        command.giving_up = GivingUp::no;
    }
    if (command.at == Step::done || command.at == Step::failed)
        end_sessions(state);
}

} // namespace model::splits
