/*
 * One sequence's page: locking it, reading it, moving its position, and the WAL record for that.
 * Nothing here looks anything up or waits. No error is reported under the page's lock: the caller
 * acts on the result after the page is unlocked, and so does lock_page() with a corrupted page.
 */
#pragma once

#include "pg.h"
#include "rule/decide.h"
#include "sequence/page_pin.h"

namespace snowflake
{

/* Tells whether the page changed between two draws. */
struct PageVersion {
    std::int64_t value; /* a draw changes it */
    XLogRecPtr lsn;     /* setval() changes it, also where it stores the same value again */
};

struct DrawResult {
    Draw draw;
    UnixMs now;          /* the clock, read under the lock */
    PageVersion version; /* of the page before the draw */
    bool needs_xid;      /* nothing was written: assign a transaction ID and call again */
    XLogRecPtr record;   /* protects the positions once it is durable; invalid where no WAL is */
};

/*
 * Decides a draw of up to `wanted` positions, and writes the new position. `waited_at`: the page
 * that the caller was told to pace at, and has waited for; nullptr: it has not waited.
 */
DrawResult draw_positions(PageAddress& address, std::int64_t wanted, const Limits& limits,
                          const PageVersion* waited_at);

struct AdvanceResult {
    Advance advance;
    std::int64_t value; /* of the page before the advance */
    UnixMs now;
    bool needs_xid;
    XLogRecPtr record;
};

/* Decides an advance, and writes the position. */
AdvanceResult advance_position(PageAddress& address, Id past, const Limits& limits);

} // namespace snowflake
