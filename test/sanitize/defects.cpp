/*
 * Defects on purpose: script/sanitize calls the one that its watch is for, and fails if the watch
 * stays silent. Each is a function of one argument, so that no compiler can see it coming.
 */
#include "pg.h"

extern "C" {

PG_MODULE_MAGIC;

/* An assertion that does not hold, with 0. */
PG_FUNCTION_INFO_V1(broken_assertion);
PGDLLEXPORT Datum broken_assertion(PG_FUNCTION_ARGS)
{
    const int value = PG_GETARG_INT32(0);
    Assert(value != 0);
    PG_RETURN_INT32(value);
}

/* A sum that no int holds, with 2^31 - 1. */
PG_FUNCTION_INFO_V1(signed_overflow);
PGDLLEXPORT Datum signed_overflow(PG_FUNCTION_ARGS)
{
    PG_RETURN_INT32(PG_GETARG_INT32(0) + 1);
}

/* A byte past the end of an array, with 8. */
PG_FUNCTION_INFO_V1(write_past_end);
PGDLLEXPORT Datum write_past_end(PG_FUNCTION_ARGS)
{
    volatile char array[8];
    volatile char* const end = array + PG_GETARG_INT32(0);
    *end = 1;
    PG_RETURN_INT32(*end);
}

/* A decision by memory that nobody has written, with 8. */
PG_FUNCTION_INFO_V1(uninitialised_read);
PGDLLEXPORT Datum uninitialised_read(PG_FUNCTION_ARGS)
{
    const auto* memory = static_cast<const char*>(palloc(PG_GETARG_INT32(0)));
    PG_RETURN_INT32(memory[7] == 1 ? 1 : 0);
}
}
