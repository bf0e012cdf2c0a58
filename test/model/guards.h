/*
 * The lines of the server's code that protect IDs, each with a switch that takes it out of the
 * model.
 */
#pragma once

namespace model
{

struct Guards {
    /* sequence_page.cpp, lease.h, kept_position.h */
    bool exclusive_lock = true;        /* the page is locked from reading to writing */
    bool marks_dirty = true;           /* MarkBufferDirty() at all */
    bool dirty_before_redo = true;     /* ... and before GetRedoRecPtr() */
    bool compares_redo = true;         /* a page that is not after the redo pointer is logged */
    bool lease_has_end = true;         /* a step that is larger than what is left is logged */
    bool zero_step_needs_lease = true; /* ... and so is a step of 0 without a lease */
    bool record_is_ahead = true;       /* the record holds the horizon, not the position */
    bool record_has_no_lease = true;   /* ... and a count under which nothing is left */
    bool lease_has_tag = true;         /* it counts under the LSN of its own record only */
    bool no_lease_without_wal = true;  /* what was not logged leaves none */
    bool resumes_from_kept = true;     /* a draw goes on from what a burst made */
    bool raises_to_kept = true;        /* ... and snowflake_advance() goes there at least */
    bool record_takes_xid = true;      /* a transaction that logs has an ID */
    /* durability.cpp */
    bool flushes_others_lease = true; /* make_durable() at all */
    bool flushes_what_leads = true;   /* an ID ahead of the clock is flushed before it is seen */
    bool commit_takes_xid = true;     /* make_commit_wait() gives the transaction an ID */
    bool commit_has_record = true;    /* ... and a record */
};

} // namespace model
