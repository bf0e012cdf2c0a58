/*
 * The generator's position, and the rule by which it moves: pure, so that a reader, a test and a
 * model checker can see all of it without a server.
 *
 * A sequence's last_value holds the position: Unix milliseconds << 10 | counter, independent of
 * epoch and shard. Each step makes it larger, and every ID is built from a position of its own;
 * that is the whole argument for uniqueness and for order.
 */
#pragma once

#include "layout.h"

namespace snowflake
{

enum class Position : std::int64_t {};

constexpr std::int64_t kPositionsPerMs = std::int64_t{1} << kCounterBits;
constexpr std::int64_t kMaxPositionMs = INT64_MAX >> kCounterBits;

constexpr std::int64_t raw(Position v)
{
    return static_cast<std::int64_t>(v);
}

/* Arithmetic shift: a sequence may hold any bigint, below zero too, and ms must round down. */
constexpr UnixMs ms_of(Position position)
{
    return UnixMs{raw(position) >> kCounterBits};
}

constexpr Counter counter_of(Position position)
{
    return Counter{static_cast<std::int32_t>(raw(position) & kMaxCounter)};
}

constexpr Position first_of(UnixMs ms)
{
    return Position{raw(ms) * kPositionsPerMs};
}

/* The last position of a millisecond; beyond the ends of the type, those ends. */
constexpr Position last_of(UnixMs ms)
{
    if (raw(ms) >= kMaxPositionMs)
        return Position{INT64_MAX};
    if (raw(ms) < -kMaxPositionMs)
        return Position{INT64_MIN};
    return Position{raw(ms) * kPositionsPerMs + kMaxCounter};
}

/* What a sequence holds. While is_called is false, its value itself is still to be used. */
struct Stored {
    Position position;
    bool is_called;
};

struct Limits {
    std::int64_t max_lead;  /* ms that an ID may run ahead of the clock in a burst */
    std::int64_t max_drift; /* ms that the clock may be behind the position; negative: any */
    UnixMs first;           /* the milliseconds that the caller's epoch can express */
    UnixMs last;
    Position max_value; /* the sequence's MAXVALUE */
};

enum class Verdict {
    issue,          /* the positions first .. first + count - 1 are the caller's */
    pace,           /* the burst is over: look again in a millisecond */
    clock_behind,   /* by more than max_drift */
    before_epoch,   /* the ID's age would be negative */
    past_last_ms,   /* the ID would be negative */
    past_max_value, /* the sequence cannot hold the position */
};

struct Decision {
    Verdict verdict;
    Position first;
    std::int64_t count;
    std::int64_t lead; /* of the first position over the clock, in ms */
};

constexpr Position last_position(const Decision& decision)
{
    return Position{raw(decision.first) + decision.count - 1};
}

/*
 * Who follows the clock waits for it where it is behind by no more than a burst and this: a carry,
 * a crash that passed over a lease. Where it is further behind, it was set back, and is not waited
 * for.
 */
constexpr std::int64_t kCatchUpMs = 1000;

struct Circumstances {
    bool paced;         /* the caller waited since it last saw exactly this stored position */
    bool follows_clock; /* no ID may be ahead of the clock, as beside core's nextval() */
};

/*
 * Up to `wanted` (at least 1) consecutive positions after `stored`, at the time `now`.
 *
 * A caller that was told to pace, waited, and finds the position unmoved has done its share, and
 * goes on although the clock has not caught up: a clock that stepped back slows the sequence down
 * to 1024 IDs a millisecond, and does not stop it.
 */
constexpr Decision next(Stored stored, UnixMs now, std::int64_t wanted, const Limits& limits,
                        Circumstances circumstances)
{
    const UnixMs stored_ms = ms_of(stored.position);
    const bool new_ms = stored_ms < now;

    /* The last bigint has no successor. In a new millisecond only the low bits of it are used. */
    const bool exhausted = !new_ms && stored.is_called && raw(stored.position) == INT64_MAX;
    const std::uint64_t successor =
        static_cast<std::uint64_t>(raw(stored.position)) + (stored.is_called && !exhausted ? 1 : 0);

    /* In a new millisecond the counter rolls on, as nextval() % 1024 does. */
    const Position first =
        new_ms ? Position{raw(first_of(now)) + static_cast<std::int64_t>(successor & kMaxCounter)}
               : Position{static_cast<std::int64_t>(successor)};
    const UnixMs first_ms = ms_of(first);
    const std::int64_t lead = raw(first_ms) - raw(now);

    const std::int64_t burst = circumstances.follows_clock ? 0 : limits.max_lead;

    const auto refuse = [&](Verdict verdict) { return Decision{verdict, first, 0, lead}; };

    if (limits.max_drift >= 0 && lead > limits.max_drift && lead > limits.max_lead)
        return refuse(Verdict::clock_behind);
    if (first_ms < limits.first)
        return refuse(Verdict::before_epoch);
    if (first_ms > limits.last)
        return refuse(Verdict::past_last_ms);
    if (exhausted || first > limits.max_value)
        return refuse(Verdict::past_max_value);
    /* A carry leads too: what nextval() carries into is still to come for the one who called it. */
    if (circumstances.follows_clock && lead > 0 && lead <= limits.max_lead + kCatchUpMs)
        return refuse(Verdict::pace);
    if (lead > burst && first_ms != stored_ms && !circumstances.paced)
        return refuse(Verdict::pace);

    /* The block ends where the lead does, and with its millisecond where that is over already. */
    const UnixMs burst_end{raw(now) + burst};
    Position last = last_of(burst_end > first_ms ? burst_end : first_ms);
    if (last > last_of(limits.last))
        last = last_of(limits.last);
    if (last > limits.max_value)
        last = limits.max_value;

    const std::int64_t available = raw(last) - raw(first) + 1;
    return {Verdict::issue, first, wanted < available ? wanted : available, lead};
}

/*
 * The position after which every ID is greater than `id`, whatever its shard: the whole of its
 * millisecond is passed over, since the shard bits stand above the counter.
 */
constexpr Position past_id(Id id, Epoch epoch)
{
    return last_of(time_at(age_of(id), epoch));
}

} // namespace snowflake
