/*
 * Breadth first through all states of a world, so that the first trace found is the shortest.
 *
 * For a state that was met, a fingerprint of 96 bits is kept, and the step that led to it; whole
 * states are kept for two depths only. The sessions are alike, so states that differ only by the
 * order of the sessions are the same (unless one of them is the sequence's creator).
 */
#pragma once

#include "actions.h"
#include "forget.h"

namespace model
{

/* Where the state stands in a table, and what is compared there: 96 bits. */
struct Fingerprint {
    std::uint32_t place;
    std::uint64_t print;
};

inline std::uint64_t mix(std::uint64_t one, std::uint64_t other)
{
    const auto product = static_cast<unsigned __int128>(one) * other;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

/* Two words at a time: half of the multiplications. */
inline Fingerprint fingerprint_of(const void* bytes, std::size_t size)
{
    std::uint64_t low = 0x243f6a8885a308d3;
    std::uint64_t high = 0x13198a2e03707344;
    const char* from = static_cast<const char*>(bytes);
    for (std::size_t at = 0; at < size; at += 2 * sizeof(std::uint64_t)) {
        std::uint64_t words[2] = {};
        std::memcpy(words, from + at, std::min(sizeof words, size - at));
        low = mix(low ^ words[0] ^ 0x9e3779b97f4a7c15, words[1] ^ 0xd6e8feb86659fd93);
        high = mix(high ^ words[1] ^ 0xc2b2ae3d27d4eb4f, words[0] ^ 0xa0761d6478bd642f);
    }
    return {static_cast<std::uint32_t>(low ^ low >> 32), high ^ low};
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
    std::uint32_t parent;
    Action action;
};

/* The states met so far, by number. */
class Met
{
public:
    static constexpr std::uint32_t kNone = UINT32_MAX;

    Met() : slots_(1 << 16, kFree) {}

    std::size_t size() const { return nodes_.size(); }

    /* add() will look there soon. The search would else wait for this memory most of the time. */
    void prefetch(const Fingerprint& print) const
    {
        __builtin_prefetch(&slots_[slot_of(print.place)]);
    }

    /* False where the state was met before. */
    bool add(const Fingerprint& print, const Node& node)
    {
        if (nodes_.size() * 5 > slots_.size() * 3)
            grow();
        std::size_t at = slot_of(print.place);
        for (; slots_[at].number != kNone; at = next(at))
            if (slots_[at].print == print.print && slots_[at].place == print.place)
                return false;
        slots_[at] = {print.print, print.place, static_cast<std::uint32_t>(nodes_.size())};
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
    struct Slot {
        std::uint64_t print;
        std::uint32_t place;
        std::uint32_t number;
    };
    static constexpr Slot kFree = {0, 0, kNone};

    std::size_t slot_of(std::uint32_t place) const { return place & (slots_.size() - 1); }

    std::size_t next(std::size_t at) const { return (at + 1) & (slots_.size() - 1); }

    void grow()
    {
        std::vector<Slot> old(slots_.size() * 2, kFree);
        old.swap(slots_);
        for (const Slot& slot : old) {
            if (slot.number == kNone)
                continue;
            std::size_t at = slot_of(slot.place);
            while (slots_[at].number != kNone)
                at = next(at);
            slots_[at] = slot;
        }
    }

    std::vector<Node> nodes_;
    std::vector<Slot> slots_;
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
    met.add(fingerprint_of(open[0].state, alike), {Met::kNone, {}});

    struct Step {
        State state; /* after it */
        Fingerprint print;
        Action action;
    };
    std::vector<Step> steps; /* from one state */
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
        forget_unread(state);
        steps.push_back({state, fingerprint_of(state, alike), action});
        met.prefetch(steps.back().print);
    };
    while (!open.empty() && outcome.finding == Finding::none) {
        ++outcome.depth;
        next_open.clear();
        for (const Open& from : open) {
            if (!can_still_write(from.state))
                continue;
            const auto visit = [&](Action action) { follow(from, action); };
            steps.clear();
            for_each_draw_step(from.state, world, guards, visit);
            for_each_server_step(from.state, world, visit);
            for (const Step& step : steps) {
                const auto number = static_cast<std::uint32_t>(met.size());
                if (met.add(step.print, {from.number, step.action}))
                    next_open.push_back({step.state, number});
            }
        }
        open.swap(next_open);
    }
    outcome.states = met.size();
    return outcome;
}

} // namespace model
