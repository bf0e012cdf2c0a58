/* Positions for the SQL functions: draw and wait, or advance, and make the commit durable. */
#pragma once

#include "rule/decide.h"
#include "sequence/session.h"

namespace snowflake
{

struct PositionBlock {
    Position first;
    std::int64_t count;
};

namespace generator
{

/*
 * Between 1 and `wanted` consecutive positions that an ID of this epoch can express.
 *
 * Errors besides those of open_sequence(): 55000 the clock is behind by more than max_drift, or
 * MAXVALUE is too small; 22008 before the epoch; 2200H after its last millisecond.
 */
PositionBlock draw(CallSite& site, Oid sequence, Epoch epoch, std::int64_t wanted);

/*
 * Every later ID of the sequence, read with this epoch, is greater than `past`.
 *
 * Errors besides those of open_sequence(): 2200H nothing can follow `past`; 55000 MAXVALUE is too
 * small.
 */
void advance(CallSite& site, Oid sequence, Id past, Epoch epoch);

} // namespace generator
} // namespace snowflake
