/* The model as search.h takes it. */
#pragma once

#include "actions.h"
#include "world.h"
#include "forget.h"
#include "recovery.h"
#include "trace.h"
#include "../search.h"

#include <string_view>

namespace model::moves
{

struct Moves {
    using State = moves::State;
    using Action = moves::Action;
    using Finding = moves::Finding;

    const World& world;
    const Bounds& bounds;
    Guards guards;
    bool recovers = true; /* looks for a way to rest from each state without a command */

    State first_state() const { return moves::first_state(bounds); }

    template <typename Visit>
    void for_each_action(const State& state, Visit visit) const
    {
        for_each_command(state, visit);
        for_each_fault(state, visit);
        for (Byte i = 0; i < kServers; ++i) {
            if (can_apply(state, i, guards))
                visit(Action{Kind::apply, i, 0});
            if (std::memcmp(&state.servers[i].now, &state.servers[i].disk, sizeof(Image)) != 0)
                visit(Action{Kind::flush, i, 0});
            if (state.draws_left > 0 && can_draw(state.servers[i]))
                visit(Action{Kind::draw, i, 0});
        }
        for (Byte client = 0; client < kClients; ++client) {
            if (state.clients[client].is_writing)
                visit(Action{Kind::commit, client, 0});
            for (Byte server = 0; server < kServers; ++server)
                if (can_write(state, client, server))
                    visit(Action{Kind::write, client, server});
        }
    }

    Finding apply(State& state, Action action) const
    {
        const Finding finding = moves::apply(state, action, guards);
        const Finding seen = finding != Finding::none ? finding : look_at(state);
        if (seen != Finding::none || !recovers || !is_idle(state))
            return seen;
        return recover(state, guards, [](const State&, const State&, Action) {});
    }

    static void forget(State& state) { forget_unread(state); }

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
            if (can_end(state, guards))
                visit(Action{Kind::step, 0, 0});
            return;
        }
        if (state.commands_left == 0 || !can_begin(state, guards))
            return;
        for (Byte from = 0; from < kServers; ++from)
            for (const Verb verb : world.verbs)
                if (is_possible(act_of(state, verb, from, guards)) &&
                    (from == 0 || world.from_both || verb == Verb::abort))
                    visit(Action{Kind::begin, from, static_cast<Byte>(verb)});
    }

    template <typename Visit>
    void for_each_fault(const State& state, Visit visit) const
    {
        if (state.stalls_left > 0 && can_be_late(state))
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
            if (state.losses_left > 0 && world.loses_slot && state.servers[i].slot.is_there &&
                !state.servers[i].slot.is_lost)
                visit(Action{Kind::lose_slot, i, 0});
            if (state.losses_left > 0 && world.loses_triggers &&
                state.servers[i].now.has_triggers && !state.servers[i].now.is_closed)
                visit(Action{Kind::lose_triggers, i, 0});
        }
        if (state.keeping.step != Step::none) {
            visit(Action{Kind::keep_late, 0, 0});
            visit(Action{Kind::drop_keep, 0, 0});
        }
    }
};

} // namespace model::moves
