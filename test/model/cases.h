/*
 * Guards that are taken out, the worlds in which that is searched, and the finding that is
 * expected. The first five are the ways in which core's nextval() returns a value twice.
 *
 * Where two guards cover each other, nothing is found without one of them, and something is found
 * without both.
 */
#pragma once

#include "search.h"

namespace model
{

struct Case {
    const char* text;
    std::vector<bool Guards::*> removed;
    std::vector<const char*> worlds;
    Finding finding; /* expected in each of the worlds; none: nothing */
    const char* why_nothing;
};

inline std::vector<Case> all_cases()
{
    using G = Guards;
    return {
        {"core's 1st: the page is dirtied after the comparison with the redo pointer",
         {&G::dirty_before_redo},
         {"sessions"},
         Finding::durable_not_below,
         ""},
        {"core's 2nd: UNLOGGED, then SET LOGGED, with a lease that nothing promised",
         {&G::no_lease_without_wal, &G::lease_has_tag},
         {"unlogged"},
         Finding::durable_not_below,
         ""},
        {"core's 3rd: wal_level=minimal, with a lease that nothing promised",
         {&G::no_lease_without_wal, &G::lease_has_tag},
         {"minimal"},
         Finding::durable_not_below,
         ""},
        {"core's 4th: CREATE DATABASE ... TEMPLATE copies a lease",
         {&G::lease_has_tag},
         {"template"},
         Finding::durable_not_below,
         ""},
        {"core's 5th: a commit does not flush the lease that another session has written",
         {&G::flushes_others_lease},
         {"sessions"},
         Finding::durable_not_below,
         ""},

        {"the page is not locked from reading to writing",
         {&G::exclusive_lock},
         {"sessions"},
         Finding::out_of_order,
         ""},
        {"the page is not marked dirty",
         {&G::marks_dirty},
         {"sessions"},
         Finding::durable_not_below,
         ""},
        {"the page's LSN is not compared with the redo pointer",
         {&G::compares_redo},
         {"sessions"},
         Finding::durable_not_below,
         ""},
        {"PostgreSQL 19: a page that is dirty is not compared",
         {&G::compares_dirty},
         {"marked"},
         Finding::durable_not_below,
         ""},
        {"a page that needs a record is marked dirty, and then left to another draw",
         {&G::xid_before_dirty},
         {"sessions"},
         Finding::durable_not_below,
         ""},
        {"the lease has no end", {&G::lease_has_end}, {"blocks"}, Finding::durable_not_below, ""},
        {"a step of 0 needs no lease: a value that setval() left to be made is not logged",
         {&G::zero_step_needs_lease},
         {"core"},
         Finding::durable_not_below,
         ""},
        {"the record holds the position, and the page a lease",
         {&G::record_is_ahead},
         {"sessions"},
         Finding::durable_not_below,
         ""},
        {"a draw does not pace where the value was set",
         {&G::paces_after_set},
         {"set back"},
         Finding::out_of_order,
         ""},
        {"a draw that has paced does not see that the same value was set again",
         {&G::pace_compares_lsn},
         {"set back"},
         Finding::out_of_order,
         ""},
        {"an advance leaves the log_cnt of a value that was drawn",
         {&G::advance_is_set},
         {"set back"},
         Finding::out_of_order,
         ""},
        {"the lease has no tag (SET UNLOGGED and back)",
         {&G::lease_has_tag},
         {"persistence"},
         Finding::durable_not_below,
         ""},
        {"an ID ahead of the clock is not flushed before it is seen",
         {&G::flushes_ahead},
         {"running"},
         Finding::leading_again,
         ""},
        {"under another session's lease, the transaction takes no XID",
         {&G::commit_takes_xid},
         {"sessions"},
         Finding::durable_not_below,
         ""},
        {"under another session's lease, the transaction writes no record",
         {&G::commit_has_record},
         {"sessions"},
         Finding::durable_not_below,
         ""},

        {"what was not logged leaves a lease",
         {&G::no_lease_without_wal},
         {"persistence", "unlogged", "minimal"},
         Finding::none,
         "the tag covers it: the copy that is logged in the end has another LSN"},
        {"the record carries a lease",
         {&G::record_has_no_lease},
         {"sessions", "blocks"},
         Finding::none,
         "the tag covers it: a record cannot hold its own LSN"},
        {"the record carries a lease, and the lease has no tag",
         {&G::record_has_no_lease, &G::lease_has_tag},
         {"blocks"},
         Finding::durable_not_below,
         ""},
        {"a transaction that logs takes no XID for it",
         {&G::record_takes_xid},
         {"sessions", "blocks"},
         Finding::none,
         "make_durable() finds its own record unflushed, and takes one"},
        {"a transaction that logs takes no XID for it, nor does make_durable()",
         {&G::record_takes_xid, &G::commit_takes_xid},
         {"sessions"},
         Finding::durable_not_below,
         ""},
    };
}

} // namespace model
