/*
 * From a state in which no command runs: the next commands without a fault, until the shards are at
 * rest and nothing is left of the split.
 */
#pragma once

#include "actions.h"

namespace model::splits
{

inline bool is_idle(const State& state)
{
    return !state.command.is_running && state.running[kOld].step == Step::none &&
           state.running[kStandby].step == Step::none;
}

/* Transactions of clients end, WAL is flushed and replayed, a promotion comes. False if nothing was
 * left to do. */
inline bool let_run(State& state, const Guards& guards)
{
    bool has_run = state.is_requested;
    for (std::size_t i = 0; i < kClients; ++i)
        if (state.clients[i].is_writing) {
            commit_client(state, i);
            has_run = true;
        }
    flush(state, kOld);
    if (can_replay(state, guards)) {
        replay(state, guards);
        has_run = true;
    }
    if (state.is_requested)
        promote(state);
    if (!state.is_in_recovery)
        flush(state, kStandby);
    return has_run;
}

/* tell(before, after, action) is called for each step. */
template <typename Tell>
Finding run_action(State& state, Action action, const Guards& guards, Tell tell)
{
    const State before = state;
    const Finding finding = apply(state, action, guards);
    tell(before, state, action);
    return finding != Finding::none ? finding : look_at(state);
}

template <typename Tell>
Finding run_command(State& state, Verb verb, const Guards& guards, Tell tell)
{
    state.commands_left = state.stalls_left = UINT8_MAX;
    Finding finding = run_action(state, {Kind::begin, 0, static_cast<Byte>(verb)}, guards, tell);
    while (state.command.is_running && finding == Finding::none) {
        if (can_end(state))
            finding = run_action(state, {Kind::step, 0, 0}, guards, tell);
        else if (!let_run(state, guards))
            finding = run_action(state, {Kind::late, 0, 0}, guards, tell);
        else
            finding = look_at(state);
    }
    if (finding != Finding::none)
        return finding;
    let_run(state, guards);
    return look_at(state);
}

inline Finding look_at_rest(const State& state)
{
    const bool is_split =
        state.servers[kStandby].now.is_new || !state.servers[kOld].now.shards[kLeaves].is_there;
    for (std::size_t number = 0; number < kShards; ++number) {
        const std::size_t home = is_split && number == kLeaves ? kStandby : kOld;
        if (!is_open(state, home, number) || is_open(state, 1 - home, number))
            return Finding::no_rest;
        const Server& server = state.servers[home];
        if (server.now.shards[number].is_at_end || server.is_read_only)
            return Finding::stuck;
    }
    return state.is_paused || state.leads_to != (is_split ? kStandby : kOld) ? Finding::no_rest
                                                                             : Finding::none;
}

/* A standby that somebody else has promoted is no part of it; and one that --abort could not reach
 * stays read-only, as it says. */
inline Finding look_for_rest(const State& state)
{
    for (std::size_t i = 0; i < kServers; ++i) {
        const Server& server = state.servers[i];
        if (i == kStandby && is_stray(state) && server.now.step != RecordStep::none)
            continue;
        if (server.now.step != RecordStep::none || server.has_slot ||
            server.now.shards[kLeaves].has_triggers || server.now.shards[kStays].has_triggers)
            return Finding::left;
    }
    return Finding::none;
}

/* --resume; where it fails, --abort; and where that fails, too, the standby is started again, as
 * the message says. */
template <typename Tell>
Finding come_to_end(State& state, const Guards& guards, Tell tell)
{
    const auto is_under_way = [&] { return Program{state, guards}.is_under_way(); };
    Finding finding = run_command(state, Verb::resume, guards, tell);
    if (finding == Finding::none && is_under_way())
        finding = run_command(state, Verb::abort, guards, tell);
    if (finding != Finding::none || !is_under_way())
        return finding;
    state.crashes_left = UINT8_MAX;
    finding = run_action(state, {Kind::crash, kStandby, 0}, guards, tell);
    return finding != Finding::none ? finding : run_command(state, Verb::abort, guards, tell);
}

template <typename Tell>
Finding recover(State state, const Guards& guards, Tell tell)
{
    let_run(state, guards);
    const RecordStep step = state.servers[kOld].now.step;
    Finding finding = Finding::none;
    /* At the step split, too, clients may be held: a command was killed before its end. */
    if (step != RecordStep::none && step != RecordStep::split)
        finding = come_to_end(state, guards, tell);
    if (finding == Finding::none)
        finding = look_at_rest(state);
    if (finding == Finding::none)
        finding = run_command(state, Verb::complete, guards, tell);
    return finding != Finding::none ? finding : look_for_rest(state);
}

} // namespace model::splits
