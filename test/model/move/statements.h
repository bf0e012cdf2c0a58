/* The effect of each statement of the command on its server. */
#pragma once

#include "images.h"

namespace model::moves
{

/* Of statements before the cutover. */
inline void run_copying(State& state, Statement sent, const Guards& guards)
{
    Server& source = state.servers[sent.from];
    Server& target = state.servers[1 - sent.from];
    switch (sent.step) {
    case Step::tell_target:
        target.now.record.is_held = target.now.record.is_compared = true;
        break;
    case Step::write_compared:
        source.now.record.is_compared = true;
        break;
    case Step::keep_options:
        if (sent.value & 1)
            source.now.record.is_reversible = true;
        if (sent.value & 2)
            source.now.record.is_held = true;
        break;
    case Step::make_source:
        source.now.record = {};
        source.now.record.step = RecordStep::prepared;
        source.now.record.is_reversible = sent.value & 1;
        source.now.record.is_held = (sent.value & 2) != 0;
        source.now.has_publication = true;
        source.now.kept = source.now.is_closed = source.now.has_triggers = 0;
        break;
    case Step::make_slot:
        source.now.record.is_compared = false;
        flush(state, sent.from);
        source.slot = {true, false, source.now.length};
        break;
    case Step::make_tables:
        if (guards.drops_partial_copy)
            drop_shard(target.now);
        target.now.has_shard = target.now.has_triggers = true;
        target.now.is_closed = guards.copy_is_closed;
        target.now.position = kFirst;
        target.now.is_at_end = true;
        target.now.record = {};
        target.now.record.step = RecordStep::copying;
        break;
    case Step::copy_rows:
        for (std::size_t i = 0; i < kRows; ++i)
            target.now.rows[i] = static_cast<Byte>(target.now.rows[i] + (sent.value >> i & 1));
        target.now.is_closed = true;
        break;
    case Step::write_ready:
        target.now.record.step = RecordStep::ready;
        break;
    case Step::subscribe:
        target.now.record.step = RecordStep::ready;
        target.now.subscription = Subscription::enabled;
        target.now.applied = source.slot.begin;
        break;
    case Step::back_publication:
        target.now.has_publication = true;
        break;
    case Step::back_slot:
        flush(state, 1 - sent.from);
        target.slot = {true, false, target.now.length};
        break;
    default:
        break;
    }
}

/* Of statements of the cutover, on either side. */
inline void run_cutover(State& state, Statement sent, const Guards& guards)
{
    Image& source = state.servers[sent.from].now;
    Image& target = state.servers[1 - sent.from].now;
    switch (sent.step) {
    case Step::make_triggers:
        source.has_triggers = true;
        break;
    case Step::close_tables:
        source.is_closed = true;
        source.record.marker = 0;
        if (guards.fences_with_record)
            source.record.step = RecordStep::fenced;
        break;
    case Step::keep_positions:
        keep(source, sent.value, guards);
        break;
    case Step::end_sequences:
        source.is_at_end = guards.ends_sequences;
        break;
    case Step::send_marker:
        source.record.step = RecordStep::fenced;
        source.record.marker = sent.value;
        write_wal(state.servers[sent.from],
                  {0, sent.value, source.kept != 0 ? source.kept : source.position});
        break;
    case Step::open:
        open_copy(target, guards);
        break;
    case Step::write_opened:
        target.record.step = RecordStep::open;
        break;
    case Step::erase_marker:
        source.record.marker = 0;
        break;
    case Step::release_sequences:
        release(source, guards);
        break;
    case Step::lift:
        if (guards.releases_first) {
            release(source, guards);
            source.kept = 0;
        }
        source.is_closed = false;
        source.record.step = RecordStep::prepared;
        break;
    default:
        break;
    }
}

/* Of statements after the opening, and of --abort and --complete. */
inline void run_ending(State& state, Statement sent, const Guards& guards)
{
    Server& source = state.servers[sent.from];
    Server& target = state.servers[1 - sent.from];
    switch (sent.step) {
    case Step::repair:
    case Step::finish_reverse:
        become_reverse(target.now.record, RecordStep::prepared);
        break;
    case Step::drop_subscription:
        target.now.subscription = Subscription::none;
        target.now.applied = 0;
        break;
    case Step::drop_left_back:
    case Step::drop_follower:
        source.now.subscription = Subscription::none;
        source.now.applied = 0;
        break;
    case Step::drop_slot:
        source.slot = {};
        break;
    case Step::discard_slot:
        target.slot = {};
        break;
    case Step::drop_publication:
        source.now.has_publication = false;
        break;
    case Step::discard_publication:
        target.now.has_publication = false;
        break;
    case Step::subscribe_back:
        source.now.subscription = Subscription::disabled;
        source.now.applied = target.slot.begin;
        break;
    case Step::advance_origin:
        source.now.applied = target.now.noted;
        break;
    case Step::enable_back:
        source.now.subscription = Subscription::enabled;
        if (guards.enables_with_record)
            become_reverse(source.now.record, RecordStep::ready);
        break;
    case Step::write_follower:
        become_reverse(source.now.record, RecordStep::ready);
        break;
    case Step::reset_record:
        become_reverse(source.now.record, RecordStep::prepared);
        break;
    case Step::write_moved:
        source.now.record.step = RecordStep::moved;
        source.now.record.marker = 0;
        source.now.record.is_equal = sent.value;
        break;
    case Step::drop_target_record:
        drop_record(target.now);
        break;
    case Step::drop_source_record:
        drop_record(source.now);
        break;
    case Step::drop_old:
    case Step::drop_copy_alone:
        drop_shard(target.now);
        break;
    case Step::drop_copy:
        guards.copy_goes_with_record ? drop_shard(target.now) : drop_record(target.now);
        break;
    case Step::drop_closed: {
        Image& closed = sent.value == 0 ? source.now : target.now;
        guards.triggers_go_with_rows ? drop_shard(closed) : drop_record(closed);
        break;
    }
    case Step::drop_closed_alone:
        drop_shard(sent.value == 0 ? source.now : target.now);
        break;
    default:
        break;
    }
}

/* Of these the command does not wait until they are flushed. Its next synchronous commit on the
 * server flushes them, too. */
inline bool is_asynchronous(Step step)
{
    return step == Step::make_triggers || step == Step::close_tables ||
           step == Step::keep_positions || step == Step::end_sequences ||
           step == Step::release_sequences;
}

inline std::size_t server_of(Statement sent)
{
    const Side side = row_of(sent.step).side;
    if (sent.step == Step::drop_closed || sent.step == Step::drop_closed_alone)
        return sent.value == 0 ? sent.from : 1U - sent.from;
    return side == Side::target ? 1U - sent.from : sent.from;
}

/* Reads and waits have no effect on a server. */
inline bool has_effect(Step step)
{
    switch (step) {
    case Step::begin_opening:
    case Step::note_writers:
    case Step::await_writers:
    case Step::read_sequences:
    case Step::await_marker:
    case Step::remove_rehearsal:
        return false;
    default:
        const Side side = row_of(step).side;
        return side != Side::routers && side != Side::none;
    }
}

/* It is an error: the record is there already, or is gone. */
inline bool is_refused(const State& state, Statement sent)
{
    const bool has_record = state.servers[sent.from].now.record.step != RecordStep::none;
    if (sent.step == Step::make_source)
        return has_record;
    return !has_record && (sent.step == Step::keep_options || sent.step == Step::write_compared ||
                           sent.step == Step::write_moved || sent.step == Step::reset_record ||
                           (sent.step >= Step::make_triggers && sent.step <= Step::lift &&
                            row_of(sent.step).side != Side::target));
}

inline void run_statement(State& state, Statement sent, const Guards& guards)
{
    if (!has_effect(sent.step) || is_refused(state, sent))
        return;
    if (sent.step < Step::make_triggers)
        run_copying(state, sent, guards);
    if (sent.step < Step::lead)
        run_cutover(state, sent, guards);
    run_ending(state, sent, guards);
    const bool is_sent_early = sent.step == Step::send_marker && !guards.sends_flushed;
    if (!is_asynchronous(sent.step) && !is_sent_early)
        commit(state, server_of(sent), guards);
}

} // namespace model::moves
