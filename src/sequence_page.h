/*
 * One sequence's page: locking it, reading it, moving its position, and the WAL for that. Nothing
 * here looks anything up, waits for the clock or reports an error: under the page's lock things are
 * decided, and the caller acts on them after it.
 */
#pragma once

#include "beside_core.h"
#include "lease.h"
#include "page_pin.h"
#include "pg.h"

namespace snowflake
{

struct PageResult {
    Stored stored; /* what the draw went on from */
    UnixMs now;    /* the clock, read under the lock */
    Decision decision;
    bool needs_xid;   /* nothing was written: assign a transaction ID and call again */
    XLogRecPtr lease; /* the record under which the positions are safe; invalid without WAL */
};

/*
 * Moves the position by the rule, `wanted` positions at most. `paced_at` is the position that the
 * caller has waited for a millisecond at; nullptr where it hasn't. `share` counts what this session
 * has drawn beside core's nextval().
 */
void draw_positions(PageAddress& address, std::int64_t wanted, const Limits& limits,
                    const Position* paced_at, Share& share, PageResult& result);

/*
 * Raises the position to at least `floor`, and to what a burst has made before a command of core's
 * set it back; never lowers it. decision.verdict is `issue` where the position is there now, by
 * this call or before it, and `past_max_value` where it would not fit.
 */
void raise_position(PageAddress& address, Position floor, const Limits& limits, PageResult& result);

} // namespace snowflake
