/* Arguments that several SQL functions share. */
#pragma once

#include "rule/layout.h"
#include "pg.h"

namespace snowflake
{

/* The optional last argument epoch_ms: one C function serves the SQL signatures with and without.
 */
inline Epoch epoch_argument(FunctionCallInfo fcinfo, int index)
{
    return PG_NARGS() > index ? Epoch{PG_GETARG_INT64(index)} : kInstagramEpoch;
}

} // namespace snowflake
