#include "owner_session.h"

using namespace snowflake;

namespace
{

char* text_of_row(int column)
{
    return SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, column);
}

/* A superuser's session can do anything, so no code of others may run in it. The catalogue of this
 * moment: a role that may create something there is a problem, also if nothing is there yet. */
errors::Problem foreign_code(Oid schema, Oid table)
{
    Oid types[] = {OIDOID, OIDOID};
    Datum values[] = {ObjectIdGetDatum(schema), ObjectIdGetDatum(table)};
    const MemoryContext memory = CurrentMemoryContext;
    SPI_connect();
    if (SPI_execute_with_args("SELECT * FROM snowflake_internal.foreign_code($1, $2)", 2, types,
                              values, nullptr, true, 1) != SPI_OK_SELECT ||
        SPI_processed != 1)
        elog(ERROR, "foreign_code() has failed");
    errors::Problem problem = {text_of_row(1), text_of_row(2)};
    if (problem.message != nullptr)
        problem = {MemoryContextStrdup(memory, problem.message),
                   MemoryContextStrdup(memory, problem.hint)};
    SPI_finish();
    return problem;
}

/* xmlbinary, xmloption and array_nulls, too, decide how a value is written or read. */
constexpr const char* kSettings[] = {"DateStyle",          "IntervalStyle",     "TimeZone",
                                     "extra_float_digits", "bytea_output",      "lc_monetary",
                                     "xmlbinary",          "xmloption",         "array_nulls",
                                     "lock_timeout",       "synchronous_commit"};

/* A transaction that reads in the snapshot of the caller's. */
const char* beginning(const char* mode)
{
    StringInfoData sql;
    initStringInfo(&sql);
    appendStringInfo(&sql, "BEGIN ISOLATION LEVEL %s %s;",
                     IsolationUsesXactSnapshot() ? "REPEATABLE READ" : "READ COMMITTED", mode);
    if (IsolationUsesXactSnapshot())
        appendStringInfo(&sql, "SET TRANSACTION SNAPSHOT %s;",
                         quote_literal_cstr(ExportSnapshot(GetTransactionSnapshot())));
    appendStringInfoString(&sql, "SET LOCAL search_path = pg_catalog, pg_temp;");
    for (const char* name : kSettings)
        appendStringInfo(&sql, "SET LOCAL %s = %s;", name,
                         quote_literal_cstr(GetConfigOption(name, false, false)));
    return sql.data;
}

} // namespace

errors::Problem owner_session::problem_of(Oid owner, Oid schema, Oid table)
{
    const errors::Problem problem = session::problem_of(owner);
    return problem.message == nullptr && superuser_arg(owner) ? foreign_code(schema, table)
                                                              : problem;
}

void owner_session::begin(Oid owner, Oid schema, Oid table)
{
    errors::require_none(problem_of(owner, schema, table));
    session::begin(owner);
}

void owner_session::begin_of_table(Oid table, const char* mode)
{
    begin(errors::owner_of_table(table), InvalidOid, table);
    session::ask(session::Kind::commands, beginning(mode));
}

StringInfoData owner_session::request_of(session::Kind kind, Oid table)
{
    StringInfoData request;
    initStringInfo(&request);
    appendStringInfoChar(&request, static_cast<char>(kind));
    pq_sendint32(&request, table);
    pq_sendbyte(&request, pg::has_lock(table) ? 0 : 1);
    return request;
}
