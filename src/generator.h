/*
 * Positions for SQL functions: the session's table of sequences, the checks that nextval() makes
 * before it touches anything, pacing, and what a commit must flush. Errors are decided here, and
 * worded in errors.cpp.
 */
#pragma once

#include "sequence_page.h"

namespace snowflake
{

struct SequenceEntry;

/*
 * What one place of a query has proved already: that this role may use this sequence. It lives in
 * FmgrInfo.fn_extra or a set-returning function's state, so for one run of the executor.
 */
struct CallSite {
    const char* function; /* as the user calls it, for errors */
    SequenceEntry* entry; /* nullptr: nothing proved yet */
    Oid role;
};

struct PositionBlock {
    Position first;
    std::int64_t count;
};

namespace generator
{

/* Once per session, from _PG_init. */
void initialize();

/* Between 1 and `wanted` consecutive positions that an ID of this epoch can express. */
PositionBlock draw(CallSite& site, Oid sequence, Epoch epoch, std::int64_t wanted);

/* Every later ID of the sequence, read with this epoch, is greater than `past`. */
void advance(CallSite& site, Oid sequence, Id past, Epoch epoch);

} // namespace generator
} // namespace snowflake
