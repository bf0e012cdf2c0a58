/*
 * The pin on a sequence's page. A transaction keeps the one that it took last, so that drawing many
 * IDs from one sequence pins its page once: to pin, unpin and account for it costs as much as all
 * the rest of a draw.
 */
#pragma once

#include "pg.h"

namespace snowflake
{

/* Where a sequence's page is found. Good for one transaction that holds a lock on the sequence. */
struct PageAddress {
    Oid relation;
    pg::FileLocator file;
    Buffer recent_buffer; /* where the page was last; InvalidBuffer: not known */
    bool needs_wal;       /* RelationNeedsWAL: not temporary, not unlogged, not skipping WAL */
    bool may_be_lost;     /* the file is this transaction's: a rollback brings an older one back */
};

namespace page_pin
{

/* Once per session, from _PG_init. */
void initialize();

/* The page's buffer, pinned until the transaction ends, a subtransaction aborts, or the next call.
 */
Buffer pin(PageAddress& address);

} // namespace page_pin
} // namespace snowflake
