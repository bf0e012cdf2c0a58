/* Everything that can happen next, and the state after it. */
#pragma once

#include "command_steps.h"

#include <cstring>

namespace model::splits
{

enum class Kind : Byte {
    begin,     /* a command is given */
    blind,     /* the same while the standby cannot be reached */
    step,      /* of the command */
    late,      /* the statement of the step is given up, and may end later */
    kill,      /* of the command, between two statements */
    kill_late, /* the same while its statement runs, which may end later */
    end_late,  /* a statement that was given up ends */
    drop_late, /* ... is rolled back */
    replay,    /* the standby replays the WAL that the old server has flushed */
    flush,
    crash, /* and restart */
    promote,
    stray_promotion, /* by somebody else */
    write,
    commit,
    draw, /* an ID, without a table */
};

struct Action {
    Kind kind;
    Byte who;  /* server, or client */
    Byte what; /* verb, or shard */
};

/* Clients */

inline bool can_draw(const State& state, std::size_t server, std::size_t number)
{
    const Server& on = state.servers[server];
    const Shard& shard = on.now.shards[number];
    const bool is_writable = server == kOld || (!state.is_in_recovery && !on.is_read_only);
    return is_writable && shard.is_there && !shard.is_at_end && !on.is_sequence_locked[number];
}

/* The first client is behind PgBouncer, and writes to the shard that leaves. */
inline bool can_write(const State& state, std::size_t client, std::size_t server,
                      std::size_t number)
{
    const bool is_led =
        client != 0 || (!state.is_paused && state.leads_to == server && number == kLeaves);
    return state.writes_left > 0 && !state.clients[client].is_writing && is_led &&
           is_open(state, server, number) && can_draw(state, server, number);
}

inline Finding draw(State& state, std::size_t server, std::size_t number)
{
    Server& drawn = state.servers[server];
    const Byte bit = bit_of(++drawn.now.shards[number].position);
    const int before =
        state.ids[number] | state.servers[kOld].seen[number] | state.servers[kStandby].seen[number];
    drawn.seen[number] |= bit;
    return (before & bit) != 0 ? Finding::id_twice : Finding::none;
}

inline Finding write(State& state, Action action)
{
    const std::size_t number = action.what % kShards;
    const std::size_t server = action.what / kShards;
    --state.writes_left;
    state.clients[action.who] = {true, static_cast<Byte>(server), static_cast<Byte>(number),
                                 state.rows++};
    return draw(state, server, number);
}

inline void commit_client(State& state, std::size_t client)
{
    const Client done = state.clients[client];
    const auto bit = static_cast<Byte>(1U << done.row);
    state.servers[done.server].now.shards[done.shard].rows |= bit;
    flush(state, done.server);
    state.acknowledged[done.shard] |= bit;
    state.clients[client] = {};
}

/* Servers */

inline bool can_replay(const State& state, const Guards& guards)
{
    const Server& old = state.servers[kOld];
    const Image& sent = guards.sends_flushed ? old.disk : old.now;
    return state.is_in_recovery &&
           std::memcmp(&state.servers[kStandby].now, &sent, sizeof sent) != 0;
}

inline void replay(State& state, const Guards& guards)
{
    const Server& old = state.servers[kOld];
    Server& standby = state.servers[kStandby];
    standby.now = standby.disk = guards.sends_flushed ? old.disk : old.now;
}

/* A postmaster removes the file of a request when it starts. */
inline void crash(State& state, std::size_t server)
{
    Server& crashed = state.servers[server];
    crashed.now = crashed.disk;
    crashed.seen = {};
    crashed.is_sequence_locked = {};
    state.running[server] = {};
    state.is_left[server] = false;
    if (server == kStandby) {
        state.is_requested = false;
        ++state.start;
    }
    for (Client& client : state.clients)
        if (client.is_writing && client.server == server)
            client = {};
    if (state.command.is_running)
        state.command.lost_sessions = static_cast<Byte>(state.command.lost_sessions | 1U << server);
}

/* While a split is under way, and its closing was replayed. At another time a promotion by somebody
 * else makes two servers of one: nothing is promised. */
inline bool can_stray(const State& state)
{
    const RecordStep step = state.servers[kOld].now.step;
    return state.promotions_left > 0 && state.is_in_recovery && step >= RecordStep::closed &&
           state.servers[kStandby].now.step >= RecordStep::closed;
}

inline void promote(State& state)
{
    state.is_in_recovery = state.is_requested = false;
}

/* The command */

inline bool can_begin(const State& state, bool is_blind, const Guards& guards)
{
    return !state.command.is_running &&
           (state.running[kOld].step == Step::none || !guards.locks_old) &&
           (state.running[kStandby].step == Step::none || !guards.locks_standby || is_blind);
}

inline void begin(State& state, Verb verb, bool is_blind, const Guards& guards)
{
    state.command.is_running = true;
    state.command.verb = verb;
    state.command.has_standby = !is_blind;
    /* Behind the note of an earlier command no failure lowers the fence. */
    state.command.is_final = state.servers[kOld].now.step == RecordStep::promoting;
    state.command.at = Program{state, guards}.first();
    if (state.command.at == Step::done || state.command.at == Step::failed)
        end_sessions(state);
}

inline bool is_sent(const State& state)
{
    const Statement sent = statement_of(state);
    return has_effect(sent.step) && !is_busy(state, sent) &&
           has_session(state, server_of(sent.step));
}

inline void leave_running(State& state)
{
    if (is_sent(state))
        state.running[server_of(state.command.at)] = statement_of(state);
}

inline bool can_be_late(const State& state, const Guards& guards)
{
    const Command& command = state.command;
    if (!command.is_running || !has_session(state, kOld))
        return false;
    return (is_of_cutover(command.at) && !command.is_final) ||
           (command.at == Step::request && !guards.commit_is_final);
}

/* The answer goes to nobody. */
inline void end_late(State& state, std::size_t server, const Guards& guards)
{
    const Statement sent = state.running[server];
    state.running[server] = {};
    state.is_left[server] = false;
    if (sent.step == Step::seal)
        ++state.last_seal;
    if (sent.step == Step::end_sequences)
        state.servers[server].is_sequence_locked = {};
    run_statement(state, sent, guards);
}

inline Finding apply(State& state, Action action, const Guards& guards)
{
    switch (action.kind) {
    case Kind::begin:
    case Kind::blind:
        --state.commands_left;
        begin(state, static_cast<Verb>(action.what), action.kind == Kind::blind, guards);
        break;
    case Kind::step:
        do_step(state, guards);
        break;
    case Kind::late:
        --state.stalls_left;
        leave_running(state);
        fail(state, true, guards);
        break;
    case Kind::kill:
    case Kind::kill_late:
        --state.kills_left;
        if (action.kind == Kind::kill_late)
            leave_running(state);
        end_sessions(state);
        break;
    case Kind::end_late:
        end_late(state, action.who, guards);
        break;
    case Kind::drop_late:
        if (state.running[action.who].step == Step::end_sequences)
            state.servers[action.who].is_sequence_locked = {};
        state.running[action.who] = {};
        state.is_left[action.who] = false;
        break;
    case Kind::replay:
        replay(state, guards);
        break;
    case Kind::flush:
        flush(state, action.who);
        break;
    case Kind::crash:
        --state.crashes_left;
        crash(state, action.who);
        break;
    case Kind::promote:
        promote(state);
        break;
    case Kind::stray_promotion:
        --state.promotions_left;
        promote(state);
        break;
    case Kind::write:
        return write(state, action);
    case Kind::commit:
        commit_client(state, action.who);
        break;
    case Kind::draw:
        --state.draws_left;
        return draw(state, action.who, action.what);
    }
    return Finding::none;
}

} // namespace model::splits
