#include "program/next.h"

#include "program/forks.h"

namespace program
{

namespace
{

struct Program : Forks {
    Step after(Step last) const;
    /* The parts of step.h. */
    Step before_cutover(Step last) const;
    Step in_cutover(Step last) const;
    Step in_lowering(Step last) const;
    Step after_cutover(Step last) const;
    Step in_reverse(Step last) const;
    Step in_removal(Step last) const;
};

Step Program::after(Step last) const
{
    if (last < Step::begin_opening)
        return before_cutover(last);
    if (last < Step::erase_marker)
        return in_cutover(last);
    if (last < Step::lead)
        return in_lowering(last);
    if (last >= Step::drop_left_back && last <= Step::finish_reverse)
        return in_reverse(last);
    return last < Step::reset_record ? after_cutover(last) : in_removal(last);
}

Step Program::before_cutover(Step last) const
{
    switch (last) {
    case Step::drop_old:
        return to_go_on();
    case Step::keep_options:
        return after_options();
    case Step::make_source:
        return prepare();
    case Step::make_slot:
        return view.target_record().has_copy() ? after_copy() : Step::make_tables;
    case Step::make_tables:
        return Step::copy_rows;
    case Step::copy_rows:
        return guards.subscribes_with_ready ? Step::subscribe : Step::write_ready;
    case Step::write_ready:
        return Step::subscribe;
    case Step::subscribe:
        return after_copy();
    case Step::tell_target:
        return guards.tells_target_first ? Step::write_compared : after_comparison();
    case Step::write_compared:
        return view.source_record().is_held && !guards.tells_target_first ? Step::tell_target
                                                                          : after_comparison();
    case Step::back_publication:
        return Step::back_slot;
    case Step::back_slot:
        return is_cut_over() ? Step::lead : cut_over();
    case Step::make_triggers:
        return Step::begin_opening;
    default:
        return Step::done;
    }
}

Step Program::in_cutover(Step last) const
{
    switch (last) {
    case Step::begin_opening:
        return Step::pause;
    case Step::pause:
        return raise_fence();
    case Step::close_tables:
        return after_closing();
    case Step::note_writers:
        return Step::await_writers;
    case Step::await_writers:
        return after_writers();
    case Step::read_sequences:
        return after_read();
    case Step::keep_positions:
        return after_keep();
    case Step::end_sequences:
        return guards.keeps_before_end ? after_sequences() : Step::keep_positions;
    case Step::send_marker:
        return after_marker();
    case Step::await_marker:
        return Step::open;
    case Step::open:
        return guards.opens_with_record ? after_opening() : Step::write_opened;
    case Step::write_opened:
        return after_opening();
    default:
        return Step::done;
    }
}

Step Program::in_lowering(Step last) const
{
    switch (last) {
    case Step::erase_marker:
        return guards.releases_first ? Step::release_sequences : Step::lift;
    case Step::release_sequences:
        return guards.releases_first ? Step::lift : Step::resume_clients;
    case Step::lift:
        return guards.releases_first ? Step::resume_clients : Step::release_sequences;
    case Step::resume_clients:
        return after_lowering();
    default:
        return Step::done;
    }
}

Step Program::after_cutover(Step last) const
{
    switch (last) {
    case Step::lead:
        return after_lead();
    case Step::drop_subscription:
        return is_abort() ? drop_copy() : Step::drop_slot;
    case Step::drop_slot:
        return Step::drop_publication;
    case Step::drop_publication:
        if (is_complete())
            return Step::drop_target_record;
        if (is_abort())
            return !view.source_record().step ? Step::done : Step::drop_source_record;
        return guards.drops_subscription_first ? make_reverse() : Step::done;
    case Step::discard_slot:
        return Step::discard_publication;
    case Step::discard_publication:
        if (is_abort())
            return abort();
        if (is_complete())
            return guards.drops_undos_slot ? Step::drop_slot : Step::drop_target_record;
        return guards.source_ends_first ? Step::write_moved : Step::drop_target_record;
    case Step::write_moved:
        return guards.source_ends_first ? Step::drop_target_record : Step::done;
    case Step::drop_target_record:
        if (is_complete())
            return guards.source_goes_last ? Step::drop_closed : Step::done;
        return guards.source_ends_first ? Step::done : Step::write_moved;
    default:
        return Step::done;
    }
}

Step Program::in_reverse(Step last) const
{
    switch (last) {
    case Step::drop_left_back:
        return Step::subscribe_back;
    case Step::subscribe_back:
        if (wish.gives_up_reverse)
            return Step::discard_slot;
        return guards.begins_at_opening ? Step::advance_origin : Step::enable_back;
    case Step::advance_origin:
        return Step::enable_back;
    case Step::enable_back:
        return guards.enables_with_record ? Step::finish_reverse : Step::write_follower;
    case Step::write_follower:
        return Step::finish_reverse;
    case Step::finish_reverse:
        return guards.drops_subscription_first ? Step::done : Step::drop_subscription;
    default:
        return Step::done;
    }
}

Step Program::in_removal(Step last) const
{
    switch (last) {
    case Step::remove_rehearsal:
        return Step::drop_subscription;
    case Step::drop_copy:
        return guards.copy_goes_with_record ? Step::drop_slot : Step::drop_copy_alone;
    case Step::drop_copy_alone:
        return Step::drop_slot;
    case Step::drop_source_record:
        return guards.source_goes_last ? Step::done : drop_copy();
    case Step::drop_follower:
        return Step::discard_slot;
    case Step::drop_closed:
        return guards.triggers_go_with_rows ? after_closed() : Step::drop_closed_alone;
    case Step::drop_closed_alone:
        return after_closed();
    default:
        return Step::done;
    }
}

} // namespace

Step first(Act act, const View& view, const Wish& wish, const Guards& guards)
{
    return Program{{view, wish, guards}}.first(act);
}

Step first_of_lowering(const View& view, const Guards& guards)
{
    return Program{{view, {}, guards}}.lower_fence();
}

Step next(const View& view, const Wish& wish, Step last, const Guards& guards)
{
    return Program{{view, wish, guards}}.after(last);
}

} // namespace program
