/*
 * The rule: what a draw issues, and where an advance goes. Pure functions of what the page says,
 * the clock and the limits. The page code, the unit tests and the model call them.
 */
#pragma once

#include "rule/position.h"

namespace snowflake
{

struct Limits {
    std::int64_t max_lead;  /* ms that an ID may be ahead of the clock in a burst */
    std::int64_t max_drift; /* ms that the clock may be behind the sequence; negative: any */
    Epoch epoch;
    Position max_value; /* the sequence's MAXVALUE, at most kMaxPosition */
};

enum class Verdict {
    issue,          /* the positions first .. first + count - 1 belong to the caller */
    pace,           /* wait a millisecond outside the lock, then decide again */
    clock_behind,   /* by more than max_drift */
    before_epoch,   /* the ID's age would be negative */
    past_last_ms,   /* the epoch has no ID at that time, or the sequence no position */
    past_max_value, /* the sequence's MAXVALUE is too small */
};

struct Draw {
    Verdict verdict;
    Position first;     /* only for issue */
    std::int64_t count; /* only for issue */
    std::int64_t lead;  /* of the first position's millisecond over the clock, in ms */
};

constexpr Position last_position(const Draw& draw)
{
    return Position{raw(draw.first) + draw.count - 1};
}

/*
 * Up to `wanted` (at least 1) consecutive positions after the stored one. `has_waited`: the caller
 * was told to pace, waited for a millisecond, and the page did not change meanwhile.
 *
 * The draw paces in two cases:
 *  - It would begin a millisecond that is more than max_lead ahead of the clock. A caller that has
 *    waited goes on all the same. So a clock that stepped back slows the sequence down to 1024 IDs
 *    a millisecond, and does not stop it.
 *  - The stored value was set and is not ahead of the clock. IDs that were drawn before it was set
 *    may be of the clock's present millisecond; after the wait that millisecond is over.
 */
constexpr Draw decide_draw(const Stored& stored, UnixMs now, std::int64_t wanted,
                           const Limits& limits, bool has_waited)
{
    const Start start = start_of(stored, limits.epoch);
    const UnixMs start_ms = ms_of(start.position);
    const bool is_new_ms = start_ms < now;

    const std::int64_t successor = raw(start.position) + (start.is_used ? 1 : 0);
    const UnixMs first_ms = is_new_ms ? now : ms_of(Position{successor});
    const UnixMs last_ms = last_ms_of(limits.epoch);
    const std::int64_t lead = raw(first_ms) - raw(now);

    const auto refuse = [lead](Verdict verdict) { return Draw{verdict, {}, 0, lead}; };

    if (limits.max_drift >= 0 && lead > limits.max_drift && lead > limits.max_lead)
        return refuse(Verdict::clock_behind);
    if (raw(first_ms) < raw(limits.epoch))
        return refuse(Verdict::before_epoch);
    if (first_ms > last_ms)
        return refuse(Verdict::past_last_ms);

    /* In a new millisecond the counter rolls on, as nextval() % 1024 does. */
    const Position first =
        is_new_ms ? Position{raw(first_of(now)) + (successor & kMaxCounter)} : Position{successor};
    if (first > limits.max_value)
        return refuse(Verdict::past_max_value);

    const bool is_set_back = stored.is_set && start_ms <= now;
    const bool begins_ahead = lead > limits.max_lead && first_ms != start_ms;
    if (!has_waited && (is_set_back || begins_ahead))
        return refuse(Verdict::pace);

    /* The block ends with the burst. Ahead of that, it ends with the first position's millisecond.
     */
    const UnixMs burst_end{raw(now) + limits.max_lead};
    const UnixMs block_end = burst_end > first_ms ? burst_end : first_ms;
    Position last = last_of(block_end < last_ms ? block_end : last_ms);
    if (last > limits.max_value)
        last = limits.max_value;

    const std::int64_t available = raw(last) - raw(first) + 1;
    return {Verdict::issue, first, wanted < available ? wanted : available, lead};
}

enum class AdvanceVerdict {
    raise,          /* write the position, as used */
    is_past,        /* nothing to write */
    past_last_ms,   /* no ID of this epoch can follow */
    past_max_value, /* the sequence's MAXVALUE is too small */
};

struct Advance {
    AdvanceVerdict verdict;
    Position position; /* where the sequence is, for raise and is_past */
};

/* Where a sequence has to be, so that every later ID is greater than `past` (0 or more). */
constexpr Advance decide_advance(const Stored& stored, Id past, const Limits& limits)
{
    const Position floor = past_id(past, limits.epoch);
    if (floor >= last_of(last_ms_of(limits.epoch)))
        return {AdvanceVerdict::past_last_ms, floor};
    const Start start = start_of(stored, limits.epoch);
    if (start.is_used ? start.position >= floor : start.position > floor)
        return {AdvanceVerdict::is_past, start.position};
    if (floor > limits.max_value)
        return {AdvanceVerdict::past_max_value, floor};
    return {AdvanceVerdict::raise, floor};
}

} // namespace snowflake
