/* The model as search.h takes it. */
#pragma once

#include "recovery.h"
#include "trace.h"
#include "world.h"
#include "../search.h"

namespace model::splits
{

struct Splits {
    using State = splits::State;
    using Action = splits::Action;
    using Finding = splits::Finding;

    const World& world;
    const Bounds& bounds;
    Guards guards;
    bool recovers = true; /* looks for a way to rest from each state without a command */

    State first_state() const { return splits::first_state(bounds); }

    template <typename Visit>
    void for_each_action(const State& state, Visit visit) const
    {
        for_each_command(state, visit);
        for_each_fault(state, visit);
        if (can_replay(state, guards))
            visit(Action{Kind::replay, 0, 0});
        if (state.is_requested)
            visit(Action{Kind::promote, 0, 0});
        for (Byte i = 0; i < kServers; ++i) {
            const Server& server = state.servers[i];
            if (std::memcmp(&server.now, &server.disk, sizeof server.now) != 0)
                visit(Action{Kind::flush, i, 0});
            for (Byte number = 0; number < kShards; ++number)
                if (state.draws_left > 0 && can_draw(state, i, number))
                    visit(Action{Kind::draw, i, number});
        }
        for (Byte client = 0; client < kClients; ++client) {
            if (state.clients[client].is_writing)
                visit(Action{Kind::commit, client, 0});
            for (Byte i = 0; i < kServers * kShards; ++i)
                if (can_write(state, client, i / kShards, i % kShards))
                    visit(Action{Kind::write, client, i});
        }
    }

    Finding apply(State& state, Action action) const
    {
        const Finding finding = splits::apply(state, action, guards);
        const Finding seen = finding != Finding::none ? finding : look_at(state);
        if (seen != Finding::none || !recovers || !is_idle(state))
            return seen;
        return recover(state, guards, [](const State&, const State&, Action) {});
    }

    /* Only a crash reads the disk of a server, and the standby replays the old one's. */
    static void forget(State& state)
    {
        if (state.crashes_left == 0)
            for (std::size_t i = 0; i < kServers; ++i)
                flush(state, i);
    }

    static Fingerprint fingerprint(const State& state)
    {
        return fingerprint_of(&state, sizeof state);
    }

    static std::string text(const State& before, const State& after, Action action)
    {
        return step_text(before, after, action);
    }

    /* The commands that do not lead to a rest. */
    void tell_end(const State& state) const
    {
        if (recovers && is_idle(state) && look_at(state) == Finding::none)
            recover(state, guards, [](const State& before, const State& after, Action action) {
                std::cout << "         " << step_text(before, after, action) << '\n';
            });
    }

private:
    template <typename Visit>
    void for_each_command(const State& state, Visit visit) const
    {
        if (state.command.is_running) {
            if (can_end(state))
                visit(Action{Kind::step, 0, 0});
            return;
        }
        if (state.commands_left == 0)
            return;
        for (const Verb verb : {Verb::split, Verb::resume, Verb::abort, Verb::complete}) {
            if (can_begin(state, false, guards))
                visit(Action{Kind::begin, 0, static_cast<Byte>(verb)});
            if (verb == Verb::abort && world.may_be_blind && can_begin(state, true, guards))
                visit(Action{Kind::blind, 0, static_cast<Byte>(verb)});
        }
    }

    template <typename Visit>
    void for_each_fault(const State& state, Visit visit) const
    {
        if (state.stalls_left > 0 && can_be_late(state, guards))
            visit(Action{Kind::late, 0, 0});
        if (state.kills_left > 0 && state.command.is_running) {
            visit(Action{Kind::kill, 0, 0});
            if (is_sent(state))
                visit(Action{Kind::kill_late, 0, 0});
        }
        for (Byte i = 0; i < kServers; ++i) {
            if (state.running[i].step != Step::none) {
                visit(Action{Kind::end_late, i, 0});
                visit(Action{Kind::drop_late, i, 0});
            }
            if (state.crashes_left > 0)
                visit(Action{Kind::crash, i, 0});
        }
        if (can_stray(state))
            visit(Action{Kind::stray_promotion, 0, 0});
    }
};

} // namespace model::splits
