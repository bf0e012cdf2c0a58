/* The steps that are possible in a state, and the state after each of them. */
#pragma once

#include "world.h"

namespace model
{

enum class Kind : std::uint8_t {
    begin,
    dirty,
    compare,
    write,
    see,
    commit,
    flush,
    write_page,
    determine_redo,
    publish_redo,
    collect,
    finish_checkpoint,
    restart,
    promote,
    copy,
    call,
};

struct Action {
    Kind kind;
    std::uint8_t who;    /* session; which copy or call, in the world's list */
    std::uint8_t wanted; /* index in the world's list */
    std::uint8_t clock;
};

/* The lists of a world have a few entries. */
template <typename List>
std::uint8_t count_of(const List& list)
{
    return static_cast<std::uint8_t>(list.size());
}

template <typename Visit>
void for_each_draw_step(const State& state, const World& world, const Guards& guards, Visit visit)
{
    for (std::uint8_t who = 0; who < kSessions; ++who) {
        const Session& session = state.sessions[who];
        const bool may_see_it = state.needs_wal || !has_creator(world) || who == 0;
        if (may_see_it && can_begin(state, who, guards)) {
            const std::uint8_t sizes = session.stage == Stage::idle ? count_of(world.wanted) : 1;
            for (std::uint8_t wanted = 0; wanted < sizes; ++wanted)
                for (std::uint8_t clock = 0; clock < count_of(world.clocks); ++clock)
                    if (!world.clock_runs_on ||
                        world.clocks[clock] >= earliest_reading(state, session))
                        visit(Action{Kind::begin, who, wanted, clock});
        }
        if (can_dirty(session, guards))
            visit(Action{Kind::dirty, who, 0, 0});
        if (can_compare(session, guards))
            visit(Action{Kind::compare, who, 0, 0});
        if (can_write(session, guards))
            visit(Action{Kind::write, who, 0, 0});
        if (session.stage == Stage::drawn)
            visit(Action{Kind::see, who, 0, 0});
        if (can_commit(session) && (state.needs_wal || !has_creator(world)))
            visit(Action{Kind::commit, who, 0, 0});
    }
}

template <typename Visit>
void for_each_server_step(const State& state, const World& world, Visit visit)
{
    if (can_flush(state))
        visit(Action{Kind::flush, 0, 0, 0});
    if (can_write_page(state))
        visit(Action{Kind::write_page, 0, 0, 0});
    if (can_determine_redo(state))
        visit(Action{Kind::determine_redo, 0, 0, 0});
    if (state.phase == CheckpointPhase::determined)
        visit(Action{Kind::publish_redo, 0, 0, 0});
    if (state.phase == CheckpointPhase::published)
        visit(Action{Kind::collect, 0, 0, 0});
    if (can_finish_checkpoint(state))
        visit(Action{Kind::finish_checkpoint, 0, 0, 0});
    if (can_crash(state)) {
        visit(Action{Kind::restart, 0, 0, 0});
        visit(Action{Kind::promote, 0, 0, 0});
    }
    for (std::uint8_t i = 0; i < count_of(world.copies); ++i)
        if (can_copy(state, world.copies[i]))
            visit(Action{Kind::copy, i, 0, 0});
    for (std::uint8_t i = 0; i < count_of(world.calls); ++i)
        if (can_call(state, world.calls[i]))
            visit(Action{Kind::call, i, 0, 0});
}

inline Finding apply(State& state, Action action, const World& world, const Guards& guards)
{
    switch (action.kind) {
    case Kind::begin:
        begin(state, action.who, world.wanted[action.wanted], world.clocks[action.clock], guards);
        if (world.clock_runs_on)
            state.earliest = world.clocks[action.clock];
        break;
    case Kind::dirty:
        dirty(state, action.who, guards);
        break;
    case Kind::compare:
        compare(state, action.who, guards);
        break;
    case Kind::write:
        return write(state, action.who, guards);
    case Kind::see:
        see(state, action.who, guards);
        break;
    case Kind::commit:
        commit(state, action.who);
        break;
    case Kind::flush:
        flush(state);
        break;
    case Kind::write_page:
        write_page(state);
        break;
    case Kind::determine_redo:
        determine_redo(state);
        break;
    case Kind::publish_redo:
        publish_redo(state);
        break;
    case Kind::collect:
        collect(state);
        break;
    case Kind::finish_checkpoint:
        finish_checkpoint(state);
        break;
    case Kind::restart:
    case Kind::promote:
        crash(state, action.kind == Kind::restart);
        if (world.clock_runs_on)
            ++state.earliest;
        break;
    case Kind::copy:
        copy_page(state, world.copies[action.who]);
        break;
    case Kind::call:
        call(state, world.calls[action.who], guards);
        break;
    }
    return Finding::none;
}

} // namespace model
