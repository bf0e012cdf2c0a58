/*
 * Breadth first through all states of a world, so that the first trace found is the shortest.
 *
 * For a state that was met, a fingerprint of 128 bits is kept, and the step that led to it; whole
 * states are kept for two depths only. The sessions are alike, so states that differ only by the
 * order of the sessions are the same (unless one of them is the sequence's creator).
 */
#pragma once

#include "actions.h"

namespace model
{

struct Fingerprint {
    std::uint64_t low;
    std::uint64_t high;

    bool operator==(const Fingerprint& other) const
    {
        return low == other.low && high == other.high;
    }
};

inline std::uint64_t mix(std::uint64_t hash, std::uint64_t word, std::uint64_t factor)
{
    const auto product = static_cast<unsigned __int128>(hash ^ word) * factor;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

inline Fingerprint fingerprint_of(const void* bytes, std::size_t size)
{
    Fingerprint print = {0x243f6a8885a308d3, 0x13198a2e03707344};
    const char* from = static_cast<const char*>(bytes);
    for (std::size_t at = 0; at < size; at += sizeof(std::uint64_t)) {
        std::uint64_t word = 0;
        std::memcpy(&word, from + at, std::min(sizeof word, size - at));
        print.low = mix(print.low + at, word, 0x9e3779b97f4a7c15);
        print.high = mix(print.high + at, ~word, 0xc2b2ae3d27d4eb4f);
    }
    return print;
}

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

struct Node {
    Fingerprint print;
    std::uint32_t parent;
    Action action;
};

/* The states met so far, by number. */
class Met
{
public:
    static constexpr std::uint32_t kNone = UINT32_MAX;

    Met() : slots_(1 << 16, kNone) {}

    std::size_t size() const { return nodes_.size(); }

    /* False where the state was met before. */
    bool add(const Node& node)
    {
        if (nodes_.size() * 5 > slots_.size() * 3)
            grow();
        std::uint32_t& slot = slot_for(node.print);
        if (slot != kNone)
            return false;
        slot = static_cast<std::uint32_t>(nodes_.size());
        nodes_.push_back(node);
        return true;
    }

    std::vector<Action> way_to(std::uint32_t number) const
    {
        std::vector<Action> way;
        for (; nodes_[number].parent != kNone; number = nodes_[number].parent)
            way.push_back(nodes_[number].action);
        std::reverse(way.begin(), way.end());
        return way;
    }

private:
    std::uint32_t& slot_for(const Fingerprint& print)
    {
        std::size_t at = print.low & (slots_.size() - 1);
        while (slots_[at] != kNone && !(nodes_[slots_[at]].print == print))
            at = (at + 1) & (slots_.size() - 1);
        return slots_[at];
    }

    void grow()
    {
        slots_.assign(slots_.size() * 2, kNone);
        for (std::uint32_t i = 0; i < nodes_.size(); ++i)
            slot_for(nodes_[i].print) = i;
    }

    std::vector<Node> nodes_;
    std::vector<std::uint32_t> slots_;
};

struct Outcome {
    std::size_t states = 0;
    std::size_t steps = 0;
    std::size_t depth = 0;
    Finding finding = Finding::none;      /* the one that ended the search */
    std::vector<Action> way;              /* to it */
    std::size_t not_promised = 0;         /* steps that repeat an ID that is not promised */
    std::size_t not_promised_leading = 0; /* of those, IDs that were ahead of the clock */
    std::vector<Action> way_to_not_promised;
};

/* Findings come with writes of the page. */
inline bool can_still_write(const State& state)
{
    return state.draws_left > 0 ||
           std::any_of(state.sessions.begin(), state.sessions.end(), [](const Session& session) {
               return session.stage == Stage::again || session.stage == Stage::reading;
           });
}

/* Ends at the first finding for which `is_end` is true, or when no draw is left. */
template <typename IsEnd>
Outcome search(const World& world, const Bounds& bounds, const Guards& guards, IsEnd is_end)
{
    struct Open {
        State state;
        std::uint32_t number;
    };
    Outcome outcome;
    Met met;
    const bool alike = !has_creator(world);
    std::vector<Open> open = {{first_state(world, bounds), 0}};
    met.add({fingerprint_of(open[0].state, alike), Met::kNone, {}});

    std::vector<Open> next_open;
    const auto follow = [&](const Open& from, Action action) {
        if (outcome.finding != Finding::none)
            return;
        State state = from.state;
        const Finding finding = apply(state, action, world, guards);
        ++outcome.steps;
        if (is_end(finding)) {
            outcome.finding = finding;
            outcome.way = met.way_to(from.number);
            outcome.way.push_back(action);
            return;
        }
        if (finding == Finding::not_promised_leading)
            ++outcome.not_promised_leading;
        const bool is_not_promised = finding != Finding::none && !is_broken_promise(finding);
        if (is_not_promised && outcome.not_promised++ == 0) {
            outcome.way_to_not_promised = met.way_to(from.number);
            outcome.way_to_not_promised.push_back(action);
        }
        const auto number = static_cast<std::uint32_t>(met.size());
        if (met.add({fingerprint_of(state, alike), from.number, action}))
            next_open.push_back({state, number});
    };
    while (!open.empty() && outcome.finding == Finding::none) {
        ++outcome.depth;
        next_open.clear();
        for (const Open& from : open) {
            if (!can_still_write(from.state))
                continue;
            const auto visit = [&](Action action) { follow(from, action); };
            for_each_draw_step(from.state, world, guards, visit);
            for_each_server_step(from.state, world, visit);
        }
        open.swap(next_open);
    }
    outcome.states = met.size();
    return outcome;
}

} // namespace model
