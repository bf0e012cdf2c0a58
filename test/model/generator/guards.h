/* The parts of the code that protect IDs, each with a switch that removes it from the model. */
#pragma once

namespace model
{

struct Guards {
    /* page.cpp, lease.h, decide.h */
    bool exclusive_lock = true;        /* held from reading the page to writing it */
    bool marks_dirty = true;           /* MarkBufferDirty() at all */
    bool dirty_before_redo = true;     /* ... and before GetRedoRecPtr() */
    bool xid_before_dirty = true;      /* a clean page is marked by a transaction that can log */
    bool compares_redo = true;         /* a page that is not after the redo pointer is logged */
    bool compares_dirty = true;        /* from 19 on: ... also where it was dirty before */
    bool lease_has_end = true;         /* a step that is larger than the rest of it is logged */
    bool zero_step_needs_lease = true; /* a step of 0 without a lease is logged */
    bool record_is_ahead = true;       /* the record holds the horizon, not the position */
    bool record_has_no_lease = true;   /* ... and a count under which nothing is left */
    bool lease_has_tag = true;         /* a lease counts under the LSN of its own record only */
    bool no_lease_without_wal = true;  /* a step that writes no WAL leaves no lease */
    bool paces_after_set = true;       /* a draw waits where a value was set that is in the past */
    bool pace_compares_lsn = true;     /* ... and waits again where it was set meanwhile */
    bool advance_is_set = true;        /* an advance leaves the log_cnt of a value that was set */
    bool record_takes_xid = true;      /* a transaction that logs has an XID */
    /* durability.cpp */
    bool flushes_others_lease = true; /* make_durable() at all */
    bool flushes_ahead = true;     /* the record of an ID ahead of the clock is flushed at once */
    bool commit_takes_xid = true;  /* make_commit_wait() assigns an XID */
    bool commit_has_record = true; /* ... and writes a record */
};

} // namespace model
