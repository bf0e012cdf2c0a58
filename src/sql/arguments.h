/* Arguments and results that several SQL functions share. */
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

/* The result of a function with OUT parameters. */
inline Datum row_of(FunctionCallInfo fcinfo, Datum* values, bool* nulls)
{
    TupleDesc columns = nullptr;
    if (get_call_result_type(fcinfo, nullptr, &columns) != TYPEFUNC_COMPOSITE)
        elog(ERROR, "return type must be a row type");
    return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(columns), values, nulls));
}

} // namespace snowflake
