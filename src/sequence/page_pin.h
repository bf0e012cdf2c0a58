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
    Buffer recent_buffer; /* where the page was last; InvalidBuffer: unknown */
    bool needs_wal;       /* RelationNeedsWAL: not temporary, not unlogged, not skipping WAL */
};

namespace page_pin
{

/* Once per session, from _PG_init. */
void initialize();

/*
 * The page's buffer. The pin lasts until the transaction ends, a subtransaction aborts, or pin() is
 * called for another page.
 */
Buffer pin(PageAddress& address);

} // namespace page_pin
} // namespace snowflake
