/* SQL function that reads an Instagram-style PL/pgSQL function: fetch, call, return. */
#include "errors.h"
#include "legacy_body.h"
#include "pg.h"

using namespace snowflake;

namespace
{

[[noreturn]] void no_such_function(Oid function)
{
    ereport(ERROR, (errcode(ERRCODE_UNDEFINED_FUNCTION),
                    errmsg("function with OID %u does not exist", function)));
}

[[noreturn]] void unreadable_function(Oid function, const legacy::Reading& reading)
{
    const char* name = format_procedure_qualified(function);
    const char* place =
        reading.near.empty()
            ? "at the end"
            : psprintf("at \"%.*s\"", static_cast<int>(reading.near.size()), reading.near.data());
    ereport(
        ERROR,
        (errcode(ERRCODE_INVALID_FUNCTION_DEFINITION),
         errmsg("function %s cannot be read beyond doubt", name),
         errdetail("Line %d, %s: %s.", reading.line, place, reading.problem),
         errhint("Give what it uses by name: SELECT snowflake_adopt(%s, shard => ..., seq => ..., "
                 "epoch_ms => ...).",
                 quote_literal_cstr(name))));
}

/* The result of a function with an OUT parameter is that parameter's value; empty: it RETURNS. */
const char* out_parameter(HeapTuple function)
{
    Oid* types = nullptr;
    char** names = nullptr;
    char* modes = nullptr;
    const int count = get_func_arg_info(function, &types, &names, &modes);
    for (int i = 0; i < count; ++i)
        if (modes != nullptr && modes[i] == PROARGMODE_OUT && names != nullptr &&
            names[i] != nullptr)
            return names[i];
    return "";
}

} // namespace

extern "C" {

/*
 * snowflake_internal.read_legacy(legacy regprocedure, OUT shard bigint, OUT seq text,
 *                                OUT epoch_ms bigint)
 */
PG_FUNCTION_INFO_V1(snowflake_read_legacy);
PGDLLEXPORT Datum snowflake_read_legacy(PG_FUNCTION_ARGS)
{
    const Oid function = PG_GETARG_OID(0);
    TupleDesc row_type = nullptr;
    if (get_call_result_type(fcinfo, nullptr, &row_type) != TYPEFUNC_COMPOSITE)
        elog(ERROR, "snowflake_read_legacy must return a row");

    const HeapTuple tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
    if (!HeapTupleIsValid(tuple))
        no_such_function(function);
    bool is_null = false;
    const Datum source = SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_prosrc, &is_null);
    const char* body = is_null ? "" : TextDatumGetCString(source);
    const legacy::Reading reading = legacy::read(body, out_parameter(tuple));
    ReleaseSysCache(tuple);
    if (!reading.ok)
        unreadable_function(function, reading);

    Datum values[] = {Int64GetDatum(reading.shard),
                      PointerGetDatum(cstring_to_text_with_len(
                          reading.sequence.data(), static_cast<int>(reading.sequence.size()))),
                      Int64GetDatum(raw(reading.epoch))};
    bool nulls[] = {false, false, false};
    PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(row_type), values, nulls)));
}
}
