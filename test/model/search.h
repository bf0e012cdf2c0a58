/*
 * Breadth first through all states of a model, so that the first trace found is the shortest.
 *
 * For a state that was met, a fingerprint of 96 bits is kept, and the step that led to it; whole
 * states are kept for two depths only.
 */
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

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

template <typename Action>
struct Node {
    std::uint32_t parent;
    Action action;
};

/* The states met so far, by number. */
template <typename Action>
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
    bool add(const Fingerprint& print, const Node<Action>& node)
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

    std::vector<Node<Action>> nodes_;
    std::vector<Slot> slots_;
};

template <typename Model>
struct Outcome {
    using Finding = typename Model::Finding;
    using Way = std::vector<typename Model::Action>;

    std::size_t states = 0;
    std::size_t steps = 0;
    std::size_t depth = 0;
    Finding finding = Finding::none; /* the one that ended the search */
    Way way;                         /* to it */
    std::size_t others = 0;          /* steps with a finding that did not end it */
    Way way_to_other;                /* to the first of them */
};

/*
 * Ends at the first finding for which `is_end` is true, or when all states were met. A model has
 * the types State, Action and Finding, and
 *
 *   first_state()
 *   for_each_action(state, visit)   those that are possible; none where nothing more can be found
 *   apply(state, action)            the finding of the step
 *   forget(state)                   makes values zero that no later step reads
 *   fingerprint(state)              the same for states that are alike
 */
template <typename Model, typename IsEnd>
Outcome<Model> search(const Model& model, IsEnd is_end)
{
    struct Open {
        typename Model::State state;
        std::uint32_t number;
    };
    struct Next {
        typename Model::State state;
        Fingerprint print;
        typename Model::Action action;
    };
    Outcome<Model> outcome;
    Met<typename Model::Action> met;
    std::vector<Open> open = {{model.first_state(), 0}};
    met.add(model.fingerprint(open[0].state), {met.kNone, {}});

    const auto way_to = [&](const Open& from, typename Model::Action action) {
        auto way = met.way_to(from.number);
        way.push_back(action);
        return way;
    };
    std::vector<Next> steps; /* from one state */
    std::vector<Open> next_open;
    const auto follow = [&](const Open& from, typename Model::Action action) {
        if (outcome.finding != Model::Finding::none)
            return;
        auto state = from.state;
        const auto finding = model.apply(state, action);
        ++outcome.steps;
        if (is_end(finding)) {
            outcome.finding = finding;
            outcome.way = way_to(from, action);
            return;
        }
        if (finding != Model::Finding::none && outcome.others++ == 0)
            outcome.way_to_other = way_to(from, action);
        model.forget(state);
        steps.push_back({state, model.fingerprint(state), action});
        met.prefetch(steps.back().print);
    };
    while (!open.empty() && outcome.finding == Model::Finding::none) {
        ++outcome.depth;
        next_open.clear();
        for (const Open& from : open) {
            steps.clear();
            model.for_each_action(from.state,
                                  [&](typename Model::Action action) { follow(from, action); });
            for (const Next& step : steps) {
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
