/*
 * The promises about IDs. They are checked where a block of IDs is written to the page, because
 * from there on a client may see it.
 */
#pragma once

#include "state.h"

#include <algorithm>
#include <tuple>

namespace model
{

enum class Finding {
    none,
    out_of_order,         /* not above all that were drawn since the server started */
    durable_not_below,    /* not above an ID of a transaction that committed durably */
    leading_again,        /* seen only, ahead of the clock, and made again by a later clock */
    seen_again,           /* seen only, and made again by a later clock */
    not_promised,         /* seen only, and made again by a clock that is no later */
    not_promised_leading, /* the same for an ID that was ahead of the clock */
};

inline const char* text_of(Finding finding)
{
    switch (finding) {
    case Finding::none:
        return "nothing";
    case Finding::out_of_order:
        return "not above the IDs drawn before it";
    case Finding::durable_not_below:
        return "not above an ID that was committed durably";
    case Finding::leading_again:
        return "an ID that was seen ahead of the clock is made again, though the clock ran on";
    case Finding::seen_again:
        return "an ID that was seen is made again, though the clock ran on";
    case Finding::not_promised:
    case Finding::not_promised_leading:
        return "an ID that was only seen is made again, by a clock that is no later: not promised";
    }
    return "";
}

inline bool is_broken_promise(Finding finding)
{
    return finding != Finding::none && finding < Finding::not_promised;
}

inline bool leads_the_clock(const SeenBlock& block)
{
    return raw(ms_of(Position{block.last})) > block.now;
}

/* `now`: the reading of the session that draws first .. last. */
inline Finding finding_of(const Seen& seen, Small first, Small last, Small now)
{
    if (first <= seen.drawn)
        return Finding::out_of_order;
    if (first <= seen.durable)
        return Finding::durable_not_below;
    Finding worst = Finding::none;
    for (const SeenBlock& block : seen.blocks) {
        if (block.first == 0 || block.last < first || block.first > last)
            continue;
        if (now > block.now)
            return leads_the_clock(block) ? Finding::leading_again : Finding::seen_again;
        worst = std::max(worst, leads_the_clock(block) ? Finding::not_promised_leading
                                                       : Finding::not_promised);
    }
    return worst;
}

inline void put_in_order(Seen& seen)
{
    std::sort(seen.blocks.begin(), seen.blocks.end(), [](const SeenBlock& a, const SeenBlock& b) {
        return std::tie(a.first, a.last, a.now) < std::tie(b.first, b.last, b.now);
    });
}

/* Every later ID must be above `durable`, so blocks that end at or below it are not needed. */
inline void forget_settled(Seen& seen)
{
    for (SeenBlock& block : seen.blocks)
        if (block.last <= seen.durable)
            block = {};
    put_in_order(seen);
}

inline void note_drawn(Seen& seen, Small last)
{
    seen.drawn = std::max(seen.drawn, last);
}

inline void note_seen(Seen& seen, Small first, Small last, Small now)
{
    forget_settled(seen); /* empty blocks stand in front */
    if (seen.blocks[0].first != 0) {
        std::cerr << "the model has no room for another block that was seen\n";
        std::abort();
    }
    seen.blocks[0] = {first, last, now};
    forget_settled(seen);
}

inline void note_committed(Seen& seen, Small last)
{
    seen.durable = std::max(seen.durable, last);
    forget_settled(seen);
}

} // namespace model
