/* The effect of each statement of the command on its server, after cli/sql/split.sql. */
#pragma once

#include "findings.h"
#include "guards.h"
#include "steps.h"

#include <cstdlib>
#include <iostream>

namespace model::splits
{

/* A position as a bit of a set of IDs. */
inline Byte bit_of(Byte position)
{
    if (position <= kFirst || position > kFirst + 8) {
        std::cerr << "the model has no room for position " << int(position) << '\n';
        std::abort();
    }
    return static_cast<Byte>(1U << (position - kFirst - 1));
}

inline void flush(State& state, std::size_t server)
{
    Server& flushed = state.servers[server];
    flushed.disk = flushed.now;
    for (std::size_t i = 0; i < kShards; ++i) {
        state.ids[i] |= flushed.seen[i];
        flushed.seen[i] = 0;
    }
}

inline void release(Shard& shard)
{
    if (shard.kept == 0 || !shard.is_at_end)
        return;
    shard.position = shard.kept;
    shard.is_at_end = shard.kept == kEnd;
}

inline void drop_triggers(Image& image)
{
    for (Shard& shard : image.shards)
        shard.has_triggers = false;
}

inline void drop_record(Image& image)
{
    drop_triggers(image);
    for (Shard& shard : image.shards) {
        shard.body = Body::open;
        shard.kept = 0;
    }
    image.step = RecordStep::none;
    image.seal = image.standby_start = image.is_new = 0;
}

inline void run_closing(State& state, Statement sent, const Guards& guards)
{
    Server& old = state.servers[kOld];
    Image& image = old.now;
    Shard& leaves = image.shards[kLeaves];
    switch (sent.step) {
    case Step::make_record:
        if (image.step == RecordStep::none)
            image.step = RecordStep::prepared;
        break;
    case Step::make_triggers:
        for (Shard& shard : image.shards)
            shard.has_triggers = shard.is_there;
        break;
    case Step::close:
        old.has_slot = true;
        leaves.body = Body::closed;
        image.shards[kStays].body = guards.stays_with_slot ? Body::open_with_slot : Body::open;
        image.step = RecordStep::closed;
        if (guards.seals_anew)
            image.seal = 0;
        image.standby_start = 0;
        break;
    case Step::keep_positions:
        if (leaves.kept == 0 || sent.value != kEnd)
            leaves.kept = sent.value;
        break;
    case Step::end_sequences:
        leaves.is_at_end = guards.ends_sequences;
        break;
    case Step::seal:
        image.step = RecordStep::sealed;
        if (guards.seals_anew || image.seal == 0)
            image.seal = sent.value;
        break;
    case Step::note_request:
        image.step = RecordStep::promoting;
        image.standby_start = sent.value;
        break;
    case Step::reset_seal:
        image.step = RecordStep::closed;
        image.seal = guards.seals_anew ? 0 : image.seal;
        break;
    case Step::release_sequences:
        release(leaves);
        break;
    case Step::reopen:
        release(leaves);
        leaves.kept = 0;
        leaves.body = image.shards[kStays].body = Body::open;
        image.step = RecordStep::prepared;
        image.seal = guards.seals_anew ? 0 : image.seal;
        image.standby_start = 0;
        break;
    default:
        break;
    }
}

inline void run_opening(State& state, Statement sent, const Guards& guards)
{
    Server& standby = state.servers[kStandby];
    Image& image = standby.now;
    switch (sent.step) {
    case Step::make_read_only:
        standby.is_read_only = guards.is_read_only;
        break;
    case Step::request:
        state.is_requested = state.is_in_recovery;
        break;
    case Step::end_staying:
        image.shards[kStays].is_at_end = guards.ends_staying || image.shards[kStays].is_at_end;
        break;
    case Step::release_leaving:
        if (guards.releases_leaving)
            release(image.shards[kLeaves]);
        break;
    case Step::open_sides:
        image.shards[kStays].body = Body::closed;
        image.shards[kLeaves].body = Body::open;
        image.step = RecordStep::split;
        image.is_new = true;
        break;
    case Step::make_writable:
    case Step::make_standby_writable:
        standby.is_read_only = false;
        break;
    default:
        break;
    }
}

inline void run_ending(State& state, Statement sent)
{
    Server& old = state.servers[kOld];
    Server& standby = state.servers[kStandby];
    switch (sent.step) {
    case Step::stay:
        old.now.shards[kStays].body = Body::open;
        old.now.step = RecordStep::split;
        break;
    case Step::drop_slot:
    case Step::drop_abort_slot:
        old.has_slot = false;
        break;
    case Step::drop_triggers:
        drop_triggers(old.now);
        break;
    case Step::drop_record:
        drop_record(old.now);
        break;
    case Step::drop_old_record:
        old.has_slot = false;
        drop_record(old.now);
        break;
    case Step::drop_left_rows:
        old.now.shards[kLeaves] = {};
        break;
    case Step::drop_new_record:
        drop_record(standby.now);
        break;
    case Step::drop_stayed_rows:
        standby.now.shards[kStays] = {};
        break;
    default:
        break;
    }
}

inline std::size_t server_of(Step step)
{
    return text_of(step).side == Side::standby ? kStandby : kOld;
}

inline bool has_effect(Step step)
{
    switch (step) {
    case Step::note_writers:
    case Step::await_writers:
    case Step::read_sequences:
    case Step::await_seal:
    case Step::read_start:
    case Step::await_promotion:
        return false;
    default:
        return text_of(step).side != Side::routers;
    }
}

/* A later commit of the command flushes these, too. Of a standby the statements before its
 * promotion are no commits. */
inline bool is_asynchronous(Step step)
{
    switch (step) {
    case Step::make_triggers:
    case Step::keep_positions:
    case Step::end_sequences:
    case Step::release_sequences:
    case Step::end_staying:
    case Step::release_leaving:
    case Step::make_read_only:
    case Step::request:
    case Step::make_writable:
    case Step::make_standby_writable:
        return true;
    default:
        return false;
    }
}

/* An UPDATE of a record that is gone, or a write in recovery, is an error. */
inline bool is_refused(const State& state, Statement sent)
{
    if (sent.step >= Step::close && sent.step <= Step::reopen)
        return state.servers[kOld].now.step == RecordStep::none;
    return sent.step >= Step::end_staying && sent.step <= Step::open_sides && state.is_in_recovery;
}

inline void run_statement(State& state, Statement sent, const Guards& guards)
{
    if (!has_effect(sent.step) || is_refused(state, sent))
        return;
    run_closing(state, sent, guards);
    run_opening(state, sent, guards);
    run_ending(state, sent);
    const bool is_sent_early = sent.step == Step::seal && !guards.sends_flushed;
    if (!is_asynchronous(sent.step) && !is_sent_early)
        flush(state, server_of(sent.step));
}

} // namespace model::splits
