/* Which step comes where the order has a fork: by the state of both servers, by the verb, and by
 * the orders that protect a shard. */

#pragma once

#include "program/next.h"

namespace program
{

struct Forks {
    const View& view;
    const Wish& wish;
    const Guards& guards;

    bool is_cut_over() const
    {
        const Phase phase = view.phase();
        return phase == Phase::opened || phase == Phase::ended;
    }

    Step first(Act act) const
    {
        switch (act) {
        case Act::begins:
            return view.phase() == Phase::undone ? Step::drop_old : to_go_on();
        case Act::goes_on:
            return to_go_on();
        case Act::leads:
            return Step::lead;
        case Act::aborts:
        case Act::discards:
            return lower_fence();
        case Act::drops:
            return complete();
        default:
            return Step::done;
        }
    }

    Step to_go_on() const
    {
        if (!view.source_record().is_of_source())
            return after_options();
        if (wish.is_reversible && !view.source_record().is_reversible &&
            view.source_record().step != ::Step::prepared)
            return Step::failed;
        return Step::keep_options;
    }

    Step after_options() const
    {
        if (is_cut_over())
            return Step::lead;
        return !view.source_record().step ? Step::make_source : prepare();
    }

    /* The record and the publication of the source are there. */
    Step prepare() const
    {
        if (view.target_record().has_copy() && !view.has_slot())
            return guards.keeps_slot ? Step::failed : Step::make_slot;
        if (view.source_record().step == ::Step::fenced)
            return Step::begin_opening;
        return view.target_record().has_copy() ? after_copy() : Step::make_slot;
    }

    /* An undo leaves the comparison out. */
    Step after_copy() const
    {
        if (view.source_record().is_of_source() && view.source_record().is_reverse)
            return prepare_cutover();
        return view.source_record().is_held && guards.tells_target_first ? Step::tell_target
                                                                         : Step::write_compared;
    }

    Step after_comparison() const
    {
        const bool is_to_be_held = wish.verb != Verb::cutover && view.source_record().is_held;
        return is_to_be_held ? Step::done : prepare_cutover();
    }

    Step prepare_cutover() const
    {
        return view.source_record().is_reversible && guards.slot_before_fence
                   ? Step::back_publication
                   : cut_over();
    }

    Step cut_over() const
    {
        return view.source_record().step == ::Step::fenced || !guards.makes_triggers
                   ? Step::begin_opening
                   : Step::make_triggers;
    }

    Step raise_fence() const
    {
        if (view.source_record().has_marker)
            return await_marker();
        return close_tables();
    }

    Step close_tables() const
    {
        if (view.source_record().step != ::Step::fenced)
            return Step::close_tables;
        return guards.awaits_writers_again ? after_closing() : after_writers();
    }

    Step after_closing() const
    {
        return guards.ends_after_writers ? await_writers() : Step::read_sequences;
    }

    Step await_writers() const
    {
        return guards.awaits_writers ? Step::note_writers : after_writers();
    }

    Step after_writers() const
    {
        return guards.ends_after_writers && guards.marker_comes_last ? Step::read_sequences
                                                                     : Step::send_marker;
    }

    Step after_read() const
    {
        return guards.keeps_before_end ? Step::keep_positions : Step::end_sequences;
    }

    Step after_keep() const
    {
        return guards.keeps_before_end ? Step::end_sequences : after_sequences();
    }

    Step after_sequences() const
    {
        if (!guards.ends_after_writers)
            return await_writers();
        return guards.marker_comes_last ? Step::send_marker : await_marker();
    }

    Step after_marker() const
    {
        return guards.marker_comes_last ? await_marker() : Step::read_sequences;
    }

    Step await_marker() const { return guards.awaits_marker ? Step::await_marker : Step::open; }

    Step after_opening() const
    {
        return view.source_record().is_reversible && !guards.slot_before_fence
                   ? Step::back_publication
                   : Step::lead;
    }

    Step after_lead() const
    {
        if (row_of(view.phase()).motion != Motion::moving)
            return Step::done; /* the shards have moved before */
        return guards.drops_subscription_first ? Step::drop_subscription : make_reverse();
    }

    Step make_reverse() const
    {
        if (!view.source_record().is_reversible)
            return guards.source_ends_first ? Step::write_moved : Step::drop_target_record;
        if (!view.has_back_slot())
            return Step::discard_slot;
        return !view.has_follower() ? Step::subscribe_back : Step::drop_left_back;
    }

    /* --abort and a cutover that is given up begin with it. */
    Step lower_fence() const
    {
        if (view.source_record().step != ::Step::fenced)
            return Step::resume_clients;
        if (guards.erases_marker)
            return Step::erase_marker;
        return guards.releases_first ? Step::release_sequences : Step::lift;
    }

    Step after_lowering() const
    {
        if (wish.giving_up == GivingUp::to_try_again)
            return cut_over();
        if (wish.giving_up == GivingUp::to_end)
            return Step::failed;
        if (wish.verb == Verb::complete)
            return drop_follower();
        return guards.discards_reverse ? Step::discard_slot : abort();
    }

    Step abort() const
    {
        if (view.source_record().is_of_source() && view.source_record().is_reverse)
            return Step::reset_record;
        return Step::remove_rehearsal;
    }

    Step drop_copy() const
    {
        if (!guards.source_goes_last && view.source_record().step)
            return Step::drop_source_record;
        return view.target_record().step ? Step::drop_copy : Step::drop_slot;
    }

    Step complete() const
    {
        if (row_of(view.phase()).motion != Motion::reverse)
            return Step::drop_closed;
        return guards.resumes_at_end ? Step::resume_clients : drop_follower();
    }

    Step drop_follower() const
    {
        return guards.source_goes_last ? Step::drop_follower : Step::drop_closed;
    }

    Step after_closed() const
    {
        return guards.source_goes_last || !view.target_record().step ? Step::done
                                                                     : Step::drop_follower;
    }

    bool is_abort() const { return wish.verb == Verb::abort; }
    bool is_complete() const { return wish.verb == Verb::complete; }
};

} // namespace program
