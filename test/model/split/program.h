/* The order of the steps, as cli/split has it. */
#pragma once

#include "statements.h"

namespace model::splits
{

struct Program {
    const State& state;
    const Guards& guards;
    const Command& command = state.command;
    const Image& old = state.servers[kOld].now;
    const Image& standby = state.servers[kStandby].now;

    bool is_under_way() const
    {
        return old.step != RecordStep::none && old.step != RecordStep::split;
    }

    Step first() const
    {
        switch (command.verb) {
        case Verb::split:
            return old.step == RecordStep::none ? Step::make_record : Step::failed;
        case Verb::resume:
            return old.step == RecordStep::none ? Step::failed : go_on();
        case Verb::abort:
            return abort();
        case Verb::complete:
            break;
        }
        return complete();
    }

    /* SplitCommand::go_on() */
    Step go_on() const
    {
        if (!command.has_standby)
            return Step::failed;
        if (old.step < RecordStep::promoting)
            return old.step == RecordStep::prepared || !guards.reopens_first ? prepare()
                                                                             : lower_fence();
        if (!is_under_way())
            return Step::lead;
        return guards.renews_note && state.is_in_recovery ? Step::read_start : open_standby();
    }

    Step prepare() const { return state.is_in_recovery ? Step::make_read_only : Step::failed; }

    Step lower_fence() const
    {
        if (old.step == RecordStep::prepared)
            return after_lowering();
        return guards.erases_seal ? Step::reset_seal : Step::release_sequences;
    }

    /* Behind reopen: a resumed split, a cutover that is given up, --abort. */
    Step after_lowering() const
    {
        const bool is_resumed = command.verb != Verb::abort && command.giving_up == GivingUp::no;
        return is_resumed ? prepare() : Step::resume_clients;
    }

    Step after_resuming() const
    {
        if (command.giving_up == GivingUp::to_try_again)
            return Step::make_triggers;
        return command.giving_up == GivingUp::to_end ? Step::failed : after_clients();
    }

    /* SplitCommand::open_standby() */
    Step open_standby() const { return state.is_in_recovery ? Step::request : check_seal(); }

    Step check_seal() const
    {
        if (standby.step == RecordStep::none ||
            (guards.compares_seal && standby.seal != old.seal && !standby.is_new))
            return Step::failed;
        return standby.is_new || !guards.stays_read_only ? Step::make_writable : Step::end_staying;
    }

    Step after_open() const { return guards.stays_read_only ? Step::make_writable : Step::lead; }

    Step after_seal() const { return guards.awaits_seal ? Step::await_seal : Step::read_start; }

    Step after_start() const { return guards.notes_request ? Step::note_request : Step::request; }

    Step after_lead() const { return is_under_way() ? Step::stay : Step::drop_slot; }

    Step abort() const
    {
        if (old.step == RecordStep::none || old.step == RecordStep::split)
            return Step::failed;
        if (old.step == RecordStep::promoting) {
            if (!command.has_standby)
                return guards.asks_standby ? Step::failed : lower_fence();
            if (!state.is_in_recovery && guards.looks_for_recovery)
                return Step::failed;
            if (state.start == old.standby_start && guards.looks_for_restart)
                return Step::failed;
        }
        return guards.lowers_first ? lower_fence() : Step::drop_triggers;
    }

    Step after_clients() const
    {
        const bool is_reset =
            command.has_standby && (state.is_in_recovery || !guards.keeps_stray_closed);
        return is_reset ? Step::make_standby_writable : Step::drop_triggers;
    }

    Step complete() const
    {
        if (!command.has_standby || is_under_way() ||
            (standby.step != RecordStep::none && !standby.is_new))
            return Step::failed;
        if (old.step == RecordStep::none)
            return complete_new();
        return guards.drops_rows_first ? Step::drop_left_rows : Step::drop_old_record;
    }

    Step complete_new() const
    {
        return standby.step == RecordStep::none ? Step::done : Step::drop_stayed_rows;
    }

    Step following() const
    {
        switch (command.at) {
        case Step::make_record:
            return prepare();
        case Step::make_read_only:
            return Step::make_triggers;
        case Step::make_triggers:
            return Step::pause;
        case Step::pause:
            return Step::close;
        case Step::close:
            return guards.awaits_writers ? Step::note_writers : Step::read_sequences;
        case Step::note_writers:
            return Step::await_writers;
        case Step::await_writers:
            return guards.closes_before_seal ? Step::read_sequences : Step::seal;
        case Step::read_sequences:
            return Step::keep_positions;
        case Step::keep_positions:
            return Step::end_sequences;
        case Step::end_sequences:
            return guards.closes_before_seal ? Step::seal : after_seal();
        case Step::seal:
            return guards.closes_before_seal ? after_seal() : Step::read_sequences;
        case Step::await_seal:
            return Step::read_start;
        case Step::read_start:
            return after_start();
        case Step::note_request:
            return open_standby();
        case Step::reset_seal:
            return Step::release_sequences;
        case Step::release_sequences:
            return Step::reopen;
        case Step::reopen:
            return after_lowering();
        case Step::resume_clients:
            return after_resuming();
        case Step::request:
            return Step::await_promotion;
        case Step::await_promotion:
            return check_seal();
        case Step::end_staying:
            return Step::release_leaving;
        case Step::release_leaving:
            return Step::open_sides;
        case Step::open_sides:
            return after_open();
        case Step::make_writable:
            return standby.is_new ? Step::lead : Step::end_staying;
        case Step::lead:
            return after_lead();
        case Step::stay:
            return Step::drop_slot;
        case Step::make_standby_writable:
            return Step::drop_triggers;
        case Step::drop_triggers:
            return Step::drop_abort_slot;
        case Step::drop_abort_slot:
            return Step::drop_record;
        case Step::drop_left_rows:
            return guards.drops_rows_first ? Step::drop_old_record : complete_new();
        case Step::drop_old_record:
            return guards.drops_rows_first ? complete_new() : Step::drop_left_rows;
        case Step::drop_stayed_rows:
            return Step::drop_new_record;
        default:
            return Step::done;
        }
    }
};

} // namespace model::splits
