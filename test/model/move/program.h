/* The order of the steps, as cli/move has it: which step follows another, by the records. */
#pragma once

#include "phases.h"
#include "statements.h"

namespace model::moves
{

struct Program {
    const State& state;
    const Guards& guards;
    const Command& command = state.command;
    const Server& source = state.servers[command.from];
    const Server& target = state.servers[1 - command.from];
    const Record& source_record = source.now.record;
    const Record& target_record = target.now.record;

    bool has_copy() const
    {
        return target_record.step != RecordStep::none && target_record.step != RecordStep::copying;
    }

    bool is_cut_over() const
    {
        const Phase phase = phase_of(state, command.from);
        return phase == Phase::opened || phase == Phase::ended;
    }

    bool is_of_source() const
    {
        return source_record.step == RecordStep::prepared ||
               source_record.step == RecordStep::fenced || source_record.step == RecordStep::moved;
    }

    static bool has_slot(const Server& server)
    {
        return server.slot.is_there && !server.slot.is_lost;
    }

    Step first(Act act) const
    {
        switch (act) {
        case Act::begins:
            return phase_of(state, command.from) == Phase::undone ? Step::drop_old : to_go_on();
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

    /* MoveCommand::go_on() */
    Step to_go_on() const
    {
        if (!is_of_source())
            return after_options();
        if (is_reversible(command.verb) && !source_record.is_reversible &&
            source_record.step != RecordStep::prepared)
            return Step::failed;
        return Step::keep_options;
    }

    Step after_options() const
    {
        if (is_cut_over())
            return Step::lead;
        return source_record.step == RecordStep::none ? Step::make_source : prepare();
    }

    /* MoveCommand::prepare(), behind prepare_source() */
    Step prepare() const
    {
        if (has_copy() && !has_slot(source))
            return guards.keeps_slot ? Step::failed : Step::make_slot;
        if (source_record.step == RecordStep::fenced)
            return Step::begin_opening;
        return has_copy() ? after_copy() : Step::make_slot;
    }

    /* compare_before_cutover(), which an undo leaves out */
    Step after_copy() const
    {
        if (is_of_source() && source_record.is_reverse)
            return prepare_cutover();
        return source_record.is_held && guards.tells_target_first ? Step::tell_target
                                                                  : Step::write_compared;
    }

    Step after_comparison() const
    {
        const bool is_to_be_held = command.verb != Verb::cutover && source_record.is_held;
        return is_to_be_held ? Step::done : prepare_cutover();
    }

    Step prepare_cutover() const
    {
        return source_record.is_reversible && guards.slot_before_fence ? Step::back_publication
                                                                       : cut_over();
    }

    Step cut_over() const
    {
        return source_record.step == RecordStep::fenced || !guards.makes_triggers
                   ? Step::begin_opening
                   : Step::make_triggers;
    }

    Step raise_fence() const
    {
        if (source_record.marker != 0)
            return await_marker();
        return close_tables();
    }

    Step close_tables() const
    {
        if (source_record.step != RecordStep::fenced)
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
        return source_record.is_reversible && !guards.slot_before_fence ? Step::back_publication
                                                                        : Step::lead;
    }

    Step after_lead() const
    {
        if (phase_of(state, command.from) == Phase::dropped ||
            row_of(phase_of(state, command.from)).motion != Motion::moving)
            return Step::done; /* lead_there() */
        return guards.drops_subscription_first ? Step::drop_subscription : make_reverse();
    }

    /* Behind the publication of the source. */
    Step make_reverse() const
    {
        if (!source_record.is_reversible)
            return guards.source_ends_first ? Step::write_moved : Step::drop_target_record;
        if (!has_slot(target))
            return Step::discard_slot;
        return source.now.subscription == Subscription::none ? Step::subscribe_back
                                                             : Step::drop_left_back;
    }

    /* lower_fence(), which --abort and a cutover that is given up begin with. */
    Step lower_fence() const
    {
        if (source_record.step != RecordStep::fenced)
            return Step::resume_clients;
        if (guards.erases_marker)
            return Step::erase_marker;
        return guards.releases_first ? Step::release_sequences : Step::lift;
    }

    Step after_lowering() const
    {
        if (command.giving_up == GivingUp::to_try_again)
            return cut_over();
        if (command.giving_up == GivingUp::to_end)
            return Step::failed;
        if (command.verb == Verb::complete)
            return drop_follower();
        return guards.discards_reverse ? Step::discard_slot : abort();
    }

    Step abort() const
    {
        if (is_of_source() && source_record.is_reverse)
            return Step::reset_record;
        return Step::remove_rehearsal;
    }

    Step drop_copy() const
    {
        if (!guards.source_goes_last && source_record.step != RecordStep::none)
            return Step::drop_source_record;
        return target_record.step != RecordStep::none ? Step::drop_copy : Step::drop_slot;
    }

    Step complete() const
    {
        if (row_of(phase_of(state, command.from)).motion != Motion::reverse)
            return Step::drop_closed;
        return guards.resumes_at_end ? Step::resume_clients : drop_follower();
    }

    Step drop_follower() const
    {
        return guards.source_goes_last ? Step::drop_follower : Step::drop_closed;
    }

    Step after_closed() const
    {
        return guards.source_goes_last || target_record.step == RecordStep::none
                   ? Step::done
                   : Step::drop_follower;
    }

    Step following() const;
};

} // namespace model::moves
