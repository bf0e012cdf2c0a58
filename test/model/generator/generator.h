/*
 * The model as search.h takes it. The sessions are alike, so states that differ only by the order
 * of the sessions are the same (unless one of them is the sequence's creator).
 */
#pragma once

#include "actions.h"
#include "forget.h"
#include "trace.h"
#include "../search.h"

namespace model
{

/* With the sessions in a fixed order. */
inline Fingerprint fingerprint_of(State state, bool sessions_are_alike)
{
    if (sessions_are_alike) {
        if (state.locked_by != 0)
            state.locked_by = 1; /* the one session that is reading holds it */
        std::sort(
            state.sessions.begin(), state.sessions.end(),
            [](const Session& a, const Session& b) { return std::memcmp(&a, &b, sizeof a) < 0; });
    }
    return fingerprint_of(&state, sizeof state);
}

/* Findings come with writes of the page. */
inline bool can_still_write(const State& state)
{
    return state.draws_left > 0 ||
           std::any_of(state.sessions.begin(), state.sessions.end(), [](const Session& session) {
               return session.stage == Stage::again || session.stage == Stage::reading;
           });
}

struct Generator {
    using State = model::State;
    using Action = model::Action;
    using Finding = model::Finding;

    const World& world;
    const Bounds& bounds;
    const Guards& guards;

    State first_state() const { return model::first_state(world, bounds); }

    template <typename Visit>
    void for_each_action(const State& state, Visit visit) const
    {
        if (!can_still_write(state))
            return;
        for_each_draw_step(state, world, guards, visit);
        for_each_server_step(state, world, visit);
    }

    Finding apply(State& state, Action action) const
    {
        return model::apply(state, action, world, guards);
    }

    std::string text(const State& before, const State& after, Action action) const
    {
        return step_text(before, after, action, world, guards);
    }

    void tell_end(const State&) const {}

    static void forget(State& state) { forget_unread(state); }

    Fingerprint fingerprint(const State& state) const
    {
        return fingerprint_of(state, !has_creator(world));
    }
};

} // namespace model
