/*
 * The pin on a sequence's page. A transaction keeps the pin that it took last, so that many draws
 * from one sequence pin its page once. Pinning and unpinning costs as much as the rest of a draw.
 */
#pragma once

#include "pg.h"

namespace snowflake
{

/* Where a sequence's page is. Valid in one transaction that holds a lock on the sequence. */
struct PageAddress {
    Oid relation;
    pg::FileLocator file;
    Buffer buffer;  /* where the page was last, and is while it is pinned; InvalidBuffer: unknown */
    bool needs_wal; /* RelationNeedsWAL: not temporary, not unlogged, not skipping WAL */
};

namespace page_pin
{

/* Once per session, from _PG_init. */
void initialize();

/*
 * Pins the page, in address.buffer. The pin lasts until the transaction ends, a subtransaction
 * aborts, or pin() is called for another address. The address must live until then.
 */
void pin(PageAddress& address);

/* Gives the pin up. To be called before an address that may be pinned changes. */
void release();

} // namespace page_pin
} // namespace snowflake
