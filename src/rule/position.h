/*
 * The position that a sequence stores in last_value, and how a stored value is read. Pure
 * arithmetic.
 *
 * A position is Unix milliseconds << 10 | counter. It depends on no epoch and no shard. A draw
 * moves it up, and every ID is built from a position of its own. So the IDs of one sequence, one
 * shard and one epoch are distinct and increase with their positions.
 */
#pragma once

#include "rule/layout.h"

namespace snowflake
{

enum class Position : std::int64_t {};

constexpr std::int64_t kPositionsPerMs = std::int64_t{1} << kCounterBits;

/*
 * Positions end in the year 2248. A larger stored value is an ID: setval(sequence, max(id)) is what
 * frameworks and DBAs run after a load. Every ID is larger from the 13th day of its epoch on.
 */
constexpr Position kMaxPosition{(std::int64_t{1} << 53) - 1};

constexpr std::int64_t raw(Position v)
{
    return static_cast<std::int64_t>(v);
}

/* An arithmetic shift: a sequence may hold any bigint, below zero too, and ms must round down. */
constexpr UnixMs ms_of(Position position)
{
    return UnixMs{raw(position) >> kCounterBits};
}

constexpr Counter counter_of(Position position)
{
    return Counter{static_cast<std::int32_t>(raw(position) & kMaxCounter)};
}

constexpr UnixMs kMaxPositionMs = ms_of(kMaxPosition);
static_assert(raw(kMaxPositionMs) == (std::int64_t{1} << 43) - 1, "2248-09-26 15:10:22.207 UTC");
static_assert(std::int64_t{13} * 86400000 << kTimeShift > raw(kMaxPosition), "the 13th day");

/* For a millisecond up to kMaxPositionMs. */
constexpr Position first_of(UnixMs ms)
{
    return Position{raw(ms) * kPositionsPerMs};
}

/* The last position of a millisecond; of one that has no positions, the nearest end. */
constexpr Position last_of(UnixMs ms)
{
    constexpr std::int64_t kMinPositionMs = INT64_MIN >> kCounterBits;
    if (ms >= kMaxPositionMs)
        return kMaxPosition;
    if (raw(ms) < kMinPositionMs)
        return Position{INT64_MIN};
    return Position{raw(ms) * kPositionsPerMs + kMaxCounter};
}

/* The last millisecond in which an ID of this epoch can be drawn. */
constexpr UnixMs last_ms_of(Epoch epoch)
{
    const UnixMs last = time_at(Age{kMaxAge}, epoch);
    return last < kMaxPositionMs ? last : kMaxPositionMs;
}

/*
 * The position after which every ID is greater than `id`, whatever its shard: the last one of its
 * millisecond, because the shard bits stand above the counter.
 */
constexpr Position past_id(Id id, Epoch epoch)
{
    return last_of(time_at(age_of(id), epoch));
}

/* What a sequence's tuple says. */
struct Stored {
    std::int64_t value; /* last_value: a position, or above kMaxPosition an ID */
    bool is_called;     /* false: nextval() would return the value itself */
    bool is_set;        /* log_cnt is 0: CREATE, setval(), RESTART or an advance wrote it last */
};

/* Where a draw starts. */
struct Start {
    Position position;
    bool is_used; /* false: the position itself is the first to be issued */
};

constexpr Start start_of(const Stored& stored, Epoch epoch)
{
    if (stored.value > raw(kMaxPosition))
        return {past_id(Id{stored.value}, epoch), true};
    return {Position{stored.value}, stored.is_called};
}

} // namespace snowflake
