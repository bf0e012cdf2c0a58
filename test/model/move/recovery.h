/*
 * From a state in which no command runs: the next commands, as list names them, without a fault,
 * until the shard is at rest and nothing is left of the move.
 */
#pragma once

#include "apply.h"

#include <string_view>

namespace model::moves
{

inline bool is_idle(const State& state)
{
    return !state.command.is_running && state.keeping.step == Step::none &&
           state.running[0].step == Step::none && state.running[1].step == Step::none;
}

/* Transactions of clients end, WAL is flushed, workers catch up. False if nothing was left to do.
 */
inline bool let_run(State& state, const Guards& guards)
{
    bool has_run = false;
    for (std::size_t i = 0; i < kClients; ++i)
        if (state.clients[i].is_writing) {
            commit_client(state, i);
            has_run = true;
        }
    for (std::size_t i = 0; i < kServers; ++i) {
        flush(state, i);
        flush(state, 1 - i);
        for (; can_apply(state, i, guards); has_run = true)
            apply_next(state, i);
    }
    return has_run;
}

/* tell(before, after, action) is called for the steps of the command. */
template <typename Tell>
Finding run_command(State& state, Verb verb, std::size_t from, const Guards& guards, Tell tell)
{
    const auto take = [&](Action action) {
        const State before = state;
        const Finding finding = apply(state, action, guards);
        tell(before, state, action);
        return finding != Finding::none ? finding : look_at(state);
    };
    state.commands_left = state.stalls_left = UINT8_MAX;
    Finding finding = take({Kind::begin, static_cast<Byte>(from), static_cast<Byte>(verb)});
    while (state.command.is_running && finding == Finding::none) {
        if (can_end(state, guards))
            finding = take({Kind::step, 0, 0});
        else if (!let_run(state, guards))
            finding = take({Kind::late, 0, 0});
        else
            finding = look_at(state);
    }
    if (finding != Finding::none)
        return finding;
    let_run(state, guards);
    return look_at(state);
}

/* The direction from which the records tell a move. */
inline std::size_t side_of_move(const State& state)
{
    return phase_of(state, 0) == Phase::opposite ? 1 : 0;
}

inline Verb verb_of(std::string_view option)
{
    return option == "--resume"    ? Verb::resume
           : option == "--cutover" ? Verb::cutover
           : option == "--abort"   ? Verb::abort
                                   : Verb::complete;
}

/* An undo was killed before its fence: the records do not tell it, and the alias is paused. The
 * same command is given again (docs/move-failures.md). */
inline bool is_undo_begun(const State& state, std::size_t side)
{
    return row_of(phase_of(state, side)).motion == Motion::reverse && state.is_paused;
}

inline Verb next_command(const State& state, std::size_t side)
{
    return is_undo_begun(state, side) ? Verb::undo : verb_of(row_of(phase_of(state, side)).next[0]);
}

/* The shard is open on one server, where clients are led and can draw. */
inline Finding look_at_rest(const State& state)
{
    const std::size_t open = is_open(state.servers[0].now) ? 0 : 1;
    if (!is_open(state.servers[open].now) || state.is_paused || state.leads_to != open)
        return Finding::no_rest;
    return state.servers[open].now.is_at_end ? Finding::stuck : Finding::none;
}

inline Finding look_for_rest(const State& state)
{
    for (const Server& server : state.servers)
        if (server.slot.is_there || server.now.has_publication || server.now.has_triggers ||
            server.now.record.step != RecordStep::none ||
            server.now.subscription != Subscription::none)
            return Finding::left;
    return Finding::none;
}

template <typename Tell>
Finding recover(State state, const Guards& guards, Tell tell)
{
    constexpr int kMost = 6; /* commands */
    let_run(state, guards);
    for (int i = 0; i < kMost; ++i) {
        const std::size_t side = side_of_move(state);
        const PhaseRow& row = row_of(phase_of(state, side));
        if (row.motion != Motion::moving && !is_undo_begun(state, side)) {
            if (const Finding finding = look_at_rest(state); finding != Finding::none)
                return finding;
            if (row.next[0] == nullptr)
                return look_for_rest(state);
        } else if (row.next[0] == nullptr) {
            return Finding::no_rest;
        }
        const std::size_t from = row.is_exchanged ? 1 - side : side;
        const Phase before = row.phase;
        Finding finding = run_command(state, next_command(state, side), from, guards, tell);
        if (finding == Finding::none && row_of(phase_of(state, side)).phase == before &&
            is_possible(act_of(state, Verb::abort, from, guards)))
            finding = run_command(state, Verb::abort, from, guards, tell);
        if (finding != Finding::none)
            return finding;
    }
    return Finding::no_rest;
}

} // namespace model::moves
