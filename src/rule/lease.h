/*
 * The lease in a sequence's log_cnt: how far the position may move before the next WAL record is
 * due. Pure arithmetic.
 *
 *   log_cnt = -(tag:42 << 20 | positions_left:20) - 1      always negative
 *
 * A lease is valid only while the WAL record that granted it is the last change of this very page.
 * So the tag holds that record's LSN, and the lease counts only while the page's LSN matches it. A
 * copied page (SET LOGGED, wal_level=minimal, CREATE DATABASE ... TEMPLATE) has another LSN, and no
 * lease. Core writes log_cnt >= 0, which is no lease. Core reads a negative log_cnt as "log at
 * once", so nextval() and setval() work on the sequence at any time.
 */
#pragma once

#include "rule/position.h"

namespace snowflake
{

constexpr std::int64_t kLeaseMs = 1000;
constexpr std::int64_t kLeasePositions = kLeaseMs * kPositionsPerMs;

constexpr int kLeftBits = 20;
constexpr int kTagBits = 42;
constexpr int kLsnAlignmentBits = 3; /* MAXALIGN: the low bits of a record's LSN are 0 */
static_assert(kLeasePositions < (std::int64_t{1} << kLeftBits), "a whole lease fits");
static_assert(kTagBits + kLeftBits <= 62, "the count stays negative");

/* log_cnt of a tuple that was set, not drawn from: setval(), RESTART and snowflake_advance(). */
constexpr std::int64_t kLogCountOfSet = 0;

constexpr std::uint64_t tag_of(std::uint64_t lsn)
{
    return (lsn >> kLsnAlignmentBits) & ((std::uint64_t{1} << kTagBits) - 1);
}

constexpr std::int64_t encode_lease(std::uint64_t lsn, std::int64_t positions_left)
{
    const std::uint64_t fields =
        tag_of(lsn) << kLeftBits | static_cast<std::uint64_t>(positions_left);
    return -static_cast<std::int64_t>(fields) - 1;
}

/* For records, and for pages that are not logged: nothing is left under any LSN. */
constexpr std::int64_t kNoLease = encode_lease(0, 0);

/* How many positions the page may still move before the next record. */
constexpr std::int64_t positions_left(std::int64_t log_count, std::uint64_t page_lsn)
{
    if (log_count >= 0)
        return 0;
    const auto fields = static_cast<std::uint64_t>(-(log_count + 1));
    if (fields >> kLeftBits != tag_of(page_lsn))
        return 0;
    return static_cast<std::int64_t>(fields & ((std::uint64_t{1} << kLeftBits) - 1));
}

/*
 * Whether a draw that moves the stored value by `step` needs a WAL record. `left`: positions_left()
 * of the page. `is_before_redo`: the page's LSN is not after the redo pointer, so a replay from
 * there would not see the last record.
 *
 * A step of 0 needs a lease too: setval(..., false) left the value itself to be issued, and replay
 * would leave it so again. A step is negative where an ID was stored.
 */
constexpr bool is_record_due(std::int64_t left, std::int64_t step, bool is_before_redo)
{
    return left == 0 || step < 0 || step > left || is_before_redo;
}

} // namespace snowflake
