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

/* From 17 on a session needs no LOGIN. CONNECTION LIMIT 0 keeps clients out, and does not count
 * workers (InitializeSessionUserId()). */
bool lacks_login(Oid role)
{
    const HeapTuple tuple = SearchSysCache1(AUTHOID, ObjectIdGetDatum(role));
    if (!HeapTupleIsValid(tuple))
        elog(ERROR, "cache lookup failed for role %u", role);
    const bool can_login = reinterpret_cast<Form_pg_authid>(GETSTRUCT(tuple))->rolcanlogin;
    ReleaseSysCache(tuple);
    return !can_login && pg::kAlsoWithoutLogin == 0;
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

errors::Problem owner_session::problem_of(Oid role, Oid schema, Oid table)
{
    if (const errors::Problem problem = errors::may_not_become(role); problem.message != nullptr)
        return problem;
    const char* name = errors::name_of_role(role);
    const char* database = quote_identifier(get_database_name(MyDatabaseId));
    if (!pg::has_database_right(role, ACL_CONNECT))
        return {psprintf("role %s may not connect to database %s", name, database),
                psprintf("GRANT CONNECT ON DATABASE %s TO %s;", database, name)};
    if (lacks_login(role))
        return {psprintf("role %s has no LOGIN, and before PostgreSQL 17 a session needs it", name),
                psprintf("ALTER ROLE %s LOGIN CONNECTION LIMIT 0; with this limit no client can "
                         "connect as the role.",
                         name)};
    if (superuser_arg(role) && (OidIsValid(schema) || OidIsValid(table)))
        return foreign_code(schema, table);
    return {};
}

void owner_session::begin(Oid role, Oid schema, Oid table)
{
    errors::require_none(problem_of(role, schema, table));
    session::begin(role);
}

void owner_session::begin_of_table(Oid table, const char* mode)
{
    begin(errors::owner_of_table(table), InvalidOid, table);
    session::ask(session::Kind::commands, beginning(mode));
}

StringInfoData owner_session::request_of(session::Kind kind, Oid table)
{
    StringInfoData request = session::request_of(kind);
    pq_sendint32(&request, table);
    pq_sendbyte(&request, pg::has_lock(table) ? 0 : 1);
    return request;
}
