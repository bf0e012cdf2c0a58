/*
 * The position once more, where setval() and RESTART do not reach. Pure arithmetic.
 *
 * The position stands in last_value, and core's own commands write that: setval(), ALTER SEQUENCE
 * ... RESTART, TRUNCATE ... RESTART IDENTITY. After them the clock keeps new IDs apart from those
 * made before; but not from those of this very millisecond, nor from those that a burst has made
 * ahead of it. So each draw leaves its position a second time, in the seven bytes between the
 * tuple's last column, is_called, and its aligned end. Core carries them along: setval() writes its
 * columns in place, ALTER SEQUENCE and TRUNCATE copy the tuple with heap_copytuple(), and every
 * record in the WAL holds the whole of it. Nobody reads them but us: whoever takes a tuple apart
 * stops at its last column.
 *
 * What was set back by more than that is meant: a mistake with setval() or snowflake_advance()
 * that is put right.
 */
#pragma once

#include "lease.h"

namespace snowflake
{

constexpr int kKeptBytes = 7;
using KeptBytes = unsigned char[kKeptBytes];

/* No position of the years until 4199 is larger; one that is cannot be kept, and none is. */
constexpr Position kMaxKept{(std::int64_t{1} << (8 * kKeptBytes)) - 1};
constexpr Position kNoneKept{0};

constexpr void write_kept(Position position, KeptBytes& bytes)
{
    const bool fits = position > kNoneKept && position <= kMaxKept;
    std::int64_t rest = raw(fits ? position : kNoneKept);
    for (unsigned char& byte : bytes) {
        byte = static_cast<unsigned char>(rest & 0xff);
        rest >>= 8;
    }
}

constexpr Position read_kept(const KeptBytes& bytes)
{
    std::int64_t value = 0;
    for (int i = kKeptBytes; i-- > 0;)
        value = value << 8 | bytes[i];
    return Position{value};
}

/*
 * How far ahead of the clock a position is kept: as far as a burst may run, and a few seconds more.
 * A crash passes over what is left of the lease, up to a second; a clock that is set back a little,
 * and nextval(), add to it too.
 */
constexpr std::int64_t reach(std::int64_t max_lead)
{
    return max_lead + 4 * kLeaseMs;
}

constexpr bool is_within_reach(Position kept, UnixMs now, std::int64_t max_lead)
{
    return raw(ms_of(kept)) - raw(now) <= reach(max_lead);
}

/* Where a draw goes on: from what is stored, unless that was set back behind what a burst made. */
constexpr Stored resume(Stored stored, Position kept, UnixMs now, std::int64_t max_lead)
{
    const bool is_set_back = stored.is_called ? stored.position < kept : stored.position <= kept;
    const bool is_to_come = ms_of(kept) >= now;
    return is_set_back && is_to_come && is_within_reach(kept, now, max_lead) ? Stored{kept, true}
                                                                             : stored;
}

/*
 * Where raising the position to `floor` leads: what is written is kept from then on, and must not
 * be less than what was. That the clock has passed it is no matter, for the clock may step back.
 */
constexpr Position raised(Position floor, Position kept, UnixMs now, std::int64_t max_lead)
{
    return kept > floor && is_within_reach(kept, now, max_lead) ? kept : floor;
}

} // namespace snowflake
