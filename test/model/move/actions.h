/* Everything that can happen next: the command, its faults, clients, workers and servers. */
#pragma once

#include "command_steps.h"

#include <algorithm>

namespace model::moves
{

enum class Kind : Byte {
    begin,     /* a command is given */
    step,      /* of the command */
    late,      /* the statement of the step is given up, and may end later */
    kill,      /* of the command, between two statements */
    kill_late, /* the same while its statement runs, which may end later */
    end_late,  /* a statement that was given up ends */
    drop_late, /* ... is rolled back */
    keep_late, /* the same two for the session that keeps positions */
    drop_keep,
    apply, /* the worker of a subscription applies the next entry */
    flush,
    crash, /* and restart */
    write,
    commit,
    draw, /* an ID, without a table */
    lose_slot,
    lose_triggers,
};

struct Action {
    Kind kind;
    Byte who;  /* server, or client; of a command the source */
    Byte what; /* verb, or server of the client's transaction */
};

/* Clients */

inline bool can_draw(const Server& server)
{
    return server.now.has_shard && !server.is_sequence_locked && !server.now.is_at_end;
}

inline bool can_write(const State& state, std::size_t client, std::size_t server)
{
    const bool is_led = client != 0 || (!state.is_paused && state.leads_to == server);
    return state.writes_left > 0 && !state.clients[client].is_writing && is_led &&
           is_open(state.servers[server].now) && can_draw(state.servers[server]);
}

inline Finding draw(State& state, std::size_t server)
{
    Server& drawn = state.servers[server];
    const Byte bit = bit_of(++drawn.now.position);
    const bool is_twice = ((state.ids | state.servers[0].seen | state.servers[1].seen) & bit) != 0;
    drawn.seen |= bit;
    return is_twice ? Finding::id_twice : Finding::none;
}

/* A statement locks the table and fires the trigger behind it, so this is one step. */
inline Finding write(State& state, std::size_t client, std::size_t server)
{
    --state.writes_left;
    state.clients[client] = {true, static_cast<Byte>(server), state.rows++};
    return draw(state, server);
}

inline void commit_client(State& state, std::size_t client)
{
    const Client done = state.clients[client];
    Server& server = state.servers[done.server];
    ++server.now.rows[done.row];
    write_wal(server, {static_cast<Byte>(done.row + 1), 0, 0});
    flush(state, done.server);
    state.acknowledged = static_cast<Byte>(state.acknowledged | 1U << done.row);
    state.clients[client] = {};
}

/* Servers */

inline Byte next_entry(const Server& subscriber, const Server& publisher)
{
    return std::max(subscriber.now.applied, publisher.slot.begin);
}

inline bool can_apply(const State& state, std::size_t subscriber, const Guards& guards)
{
    const Server& publisher = state.servers[1 - subscriber];
    const Image& image = state.servers[subscriber].now;
    const Byte sent = guards.sends_flushed ? publisher.disk.length : publisher.now.length;
    return image.subscription == Subscription::enabled && publisher.slot.is_there &&
           !publisher.slot.is_lost && publisher.now.has_publication &&
           next_entry(state.servers[subscriber], publisher) < sent;
}

/* The worker's commits are asynchronous. Triggers do not stop it. */
inline void apply_next(State& state, std::size_t subscriber)
{
    Server& server = state.servers[subscriber];
    const Server& publisher = state.servers[1 - subscriber];
    const Byte next = next_entry(server, publisher);
    const Entry entry = publisher.now.wal[next];
    server.now.applied = static_cast<Byte>(next + 1);
    if (entry.row == 0) {
        server.now.marker = entry.marker;
        server.now.marker_position = entry.position;
        return;
    }
    ++server.now.rows[entry.row - 1U];
    write_wal(server, entry);
}

inline void leave_none(State& state, std::size_t server)
{
    state.running[server] = {};
    state.is_left[server] = false;
}

inline void leave_no_keeper(State& state)
{
    state.keeping = {};
    state.is_keeper_left = false;
}

/* An ID that was seen alone is protected by the clock (docs/guarantees.md), and not by the position
 * that recovery restores. So it does not count after the crash. */
inline void crash(State& state, std::size_t server)
{
    Server& crashed = state.servers[server];
    crashed.now = crashed.disk;
    crashed.seen = 0;
    crashed.is_sequence_locked = false;
    leave_none(state, server);
    if (state.keeping.step != Step::none && state.keeping.from == server)
        leave_no_keeper(state);
    for (Client& client : state.clients)
        if (client.is_writing && client.server == server)
            client = {};
    if (state.command.is_running)
        state.command.lost_sessions = static_cast<Byte>(state.command.lost_sessions | 1U << server);
}

/* The command */

inline bool can_begin(const State& state, const Guards& guards)
{
    if (state.command.is_running)
        return false;
    for (std::size_t i = 0; i < kServers; ++i)
        if (state.running[i].step != Step::none &&
            (i == state.running[i].from ? guards.locks_source : guards.locks_target))
            return false;
    return true;
}

/* The servers of an undo are exchanged. */
inline void begin(State& state, std::size_t from, Verb verb, const Guards& guards)
{
    const Act act = act_of(state, verb, from, guards);
    Command& command = state.command;
    command.is_running = true;
    command.verb = verb;
    command.from = static_cast<Byte>(is_undo(verb) ? 1 - from : from);
    /* MoveCommand::execute() calls finish_reverse() first. */
    const std::size_t source = guards.repairs_both ? from : command.from;
    if (phase_of(state, source) == Phase::turning && guards.repairs_target) {
        run_statement(state, {Step::repair, static_cast<Byte>(source), 0}, guards);
    }
    command.at = first_step(state, act, guards);
    if (command.at == Step::done || command.at == Step::failed)
        end_sessions(state);
}

/* The session is there, has ended its last statement, and runs one with an effect. */
inline bool is_sent(const State& state)
{
    const Statement sent = statement_of(state);
    return has_effect(sent.step) && !is_busy(state, sent) && has_session(state, server_of(sent));
}

/* The command gives the statement up: its session ends it, or rolls it back. */
inline void leave_running(State& state)
{
    const Statement sent = statement_of(state);
    if (!is_sent(state))
        return;
    if (row_of(sent.step).side == Side::keeper)
        state.keeping = sent;
    else
        state.running[server_of(sent)] = sent;
}

inline bool can_be_late(const State& state)
{
    const Command& command = state.command;
    return command.is_running && is_of_cutover(command.at) && !command.is_final &&
           command.at != Step::make_triggers && has_session(state, command.from);
}

inline void be_late(State& state, const Guards& guards)
{
    if (state.command.at != Step::open || !guards.commit_is_final)
        leave_running(state);
    fail(state, true, guards);
}

/* The answer goes to nobody. */
inline void end_late(State& state, std::size_t server, const Guards& guards)
{
    const Statement sent = state.running[server];
    leave_none(state, server);
    if (sent.step == Step::send_marker)
        ++state.last_marker;
    if (sent.step == Step::end_sequences)
        state.servers[server].is_sequence_locked = false;
    run_statement(state, sent, guards);
}

} // namespace model::moves
