/*
 * The sequences that this session has used: lock, definition, file and privileges, checked as
 * nextval_internal() checks them before it touches the page.
 */
#pragma once

#include "pg.h"
#include "rule/position.h"
#include "sequence/page_pin.h"

namespace snowflake
{

/*
 * An entry lives as long as the session, as those of core's seqhashtab do: call sites point at it,
 * and a dropped sequence leaves a hundred bytes.
 */
struct SequenceEntry {
    Oid relation;                 /* hash key */
    LocalTransactionId locked_in; /* the transaction that took the lock */
    LocalTransactionId read_in;   /* the transaction that read all below; invalid: stale */
    PageAddress address;
    bool is_own_temp;
    bool holds_positions; /* bigint, INCREMENT 1, no copy of Citus */
    Position max_value;   /* MAXVALUE, at most kMaxPosition */
};

/*
 * One call in a query, and the entry for which it has passed the checks. Lives in FmgrInfo.fn_extra
 * or in the state of a set-returning function, so for one run of the executor.
 */
struct CallSite {
    const char* function; /* as the user calls it, for errors */
    SequenceEntry* entry; /* nullptr: nothing checked yet */
    Oid role;             /* the role that was checked */
};

namespace session
{

/* Once per session, from _PG_init. */
void initialize();

/*
 * The sequence's entry, locked in RowExclusiveLock until the transaction ends, and read. Any one of
 * `privileges` is enough, as for nextval().
 *
 * Errors: 42P01 no such relation, 42809 not a sequence, 42501 no privilege, 25006 read-only,
 * 25000 parallel mode, 55000 not a bigint, INCREMENT not 1, or a copy on a Citus worker.
 */
SequenceEntry* open_sequence(CallSite& site, Oid sequence, AclMode privileges);

/* 55000: the type, INCREMENT or bounds of the sequence do not fit positions; 25006: it is closed.
 */
[[noreturn]] void cannot_hold_positions(Oid sequence);

/* Before another error: 25006 if a move or a split has closed the sequence, whose value this is. */
void refuse_if_ended(Oid sequence, std::int64_t value);

} // namespace session
} // namespace snowflake
