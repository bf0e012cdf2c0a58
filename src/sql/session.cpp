/*
 * SQL functions that run SQL of others in a session of its owner: see session/session.h. Which role
 * that is, is decided here; the session looks again, behind its lock of the schema.
 */
#include "errors.h"
#include "owner_session.h"
#include "pg.h"
#include "session/session.h"
#include "sql/arguments.h"

using namespace snowflake;

namespace
{

/* A NULL argument is impossible where the function is STRICT. */
const char* text_argument(FunctionCallInfo fcinfo, int index)
{
    return text_to_cstring(PG_GETARG_TEXT_PP(index));
}

/* The caller has read the columns before. */
void check_columns(int count, TupleDesc columns)
{
    if (count != columns->natts)
        ereport(ERROR,
                (errcode(ERRCODE_DATATYPE_MISMATCH),
                 errmsg("the query has %d columns, and the call names %d", count, columns->natts)));
    for (int i = 0; i < count; i++)
        if (TupleDescAttr(columns, i)->atttypid != TEXTOID)
            ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                            errmsg("column %d of the call is not of type text", i + 1)));
}

/* SQL of the session can have changed client_encoding. */
Datum text_of(StringInfo message, int length)
{
    const char* bytes = pq_getmsgbytes(message, length);
    pg_verifymbstr(bytes, length, false);
    return PointerGetDatum(cstring_to_text_with_len(bytes, length));
}

void put_row(StringInfo message, void* state)
{
    const auto* result = static_cast<const ReturnSetInfo*>(state);
    Datum values[MaxTupleAttributeNumber];
    bool nulls[MaxTupleAttributeNumber];
    const int count = static_cast<int>(pq_getmsgint(message, 2));
    check_columns(count, result->setDesc);
    for (int i = 0; i < count; i++) {
        const int length = static_cast<int>(pq_getmsgint(message, 4));
        nulls[i] = length < 0;
        values[i] = length < 0 ? Datum{0} : text_of(message, length);
    }
    tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
    for (int i = 0; i < count; i++)
        if (!nulls[i])
            pfree(DatumGetPointer(values[i]));
}

/* Name and type of each column; a domain has its base type (SendRowDescriptionMessage()). */
void put_columns(StringInfo message, void* state)
{
    const auto* result = static_cast<const ReturnSetInfo*>(state);
    const int count = static_cast<int>(pq_getmsgint(message, 2));
    for (int i = 0; i < count; i++) {
        const char* name = pq_getmsgrawstring(message);
        pg_verifymbstr(name, static_cast<int>(strlen(name)), false);
        pq_getmsgbytes(message, 6); /* table, column */
        const Oid type = pq_getmsgint(message, 4);
        pq_getmsgbytes(message, 8); /* length, modifier, format */
        Datum values[] = {CStringGetTextDatum(name), ObjectIdGetDatum(type)};
        bool nulls[] = {false, false};
        tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
    }
}

/* $1 and $2 of a query are the bigint arguments after it, if the SQL signature has them. */
StringInfoData query_request(FunctionCallInfo fcinfo)
{
    StringInfoData request = session::request_of(session::Kind::query);
    pq_sendint8(&request, static_cast<std::uint8_t>(PG_NARGS() - 1));
    for (int i = 1; i < PG_NARGS(); i++)
        pq_sendint64(&request, static_cast<std::uint64_t>(PG_GETARG_INT64(i)));
    session::append_text(&request, text_argument(fcinfo, 0));
    return request;
}

/* pg_database_owner is no role that can connect. */
Oid role_of_session(const char* name)
{
    const Oid role = get_role_oid(name, false);
    return role == ROLE_PG_DATABASE_OWNER ? pg::owner_of_database() : role;
}

/* With the rights of this caller: see session/as_caller.h. PostgreSQL's own error, in the session,
 * does not tell whose right is missing. */
void define_schema(session::Kind kind, FunctionCallInfo fcinfo)
{
    const char* database = quote_identifier(get_database_name(MyDatabaseId));
    const char* caller = errors::name_of_role(GetUserId());
    if (!pg::has_database_right(GetUserId(), ACL_CREATE))
        ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
                        errmsg("role %s may not create schemas in database %s", caller, database),
                        errhint("GRANT CREATE ON DATABASE %s TO %s;", database, caller)));
    StringInfoData request = session::request_of(kind);
    pq_sendint32(&request, GetUserId());
    for (int i = 0; i < PG_NARGS(); i++)
        session::append_text(&request, NameStr(*PG_GETARG_NAME(i)));
    session::ask(request);
}

Datum row_of_problem(FunctionCallInfo fcinfo, const errors::Problem& problem)
{
    bool nulls[] = {problem.message == nullptr, problem.message == nullptr};
    Datum values[] = {nulls[0] ? Datum{0} : CStringGetTextDatum(problem.message),
                      nulls[1] ? Datum{0} : CStringGetTextDatum(problem.hint)};
    return row_of(fcinfo, values, nulls);
}

} // namespace

extern "C" {

/* snowflake_internal.session_begin(schema regnamespace, beginning text) returns void */
PG_FUNCTION_INFO_V1(snowflake_session_begin);
PGDLLEXPORT Datum snowflake_session_begin(PG_FUNCTION_ARGS)
{
    const Oid schema = PG_GETARG_OID(0);
    AcceptInvalidationMessages(); /* no lock has done it */
    owner_session::begin(errors::owner_of_schema(schema), schema);
    session::ask(session::Kind::commands, text_argument(fcinfo, 1));
    StringInfoData request = session::request_of(session::Kind::schema);
    pq_sendint32(&request, schema);
    session::ask(request);
    PG_RETURN_VOID();
}

/* snowflake_internal.session_of_role(role name, beginning text) returns void */
PG_FUNCTION_INFO_V1(snowflake_session_of_role);
PGDLLEXPORT Datum snowflake_session_of_role(PG_FUNCTION_ARGS)
{
    const Oid role = role_of_session(NameStr(*PG_GETARG_NAME(0)));
    owner_session::begin(role);
    session::ask(session::Kind::commands, "SET search_path = pg_catalog, pg_temp");
    session::ask(session::Kind::commands, text_argument(fcinfo, 1));
    PG_RETURN_VOID();
}

/* snowflake_internal.session_create_schema(name name) returns void */
PG_FUNCTION_INFO_V1(snowflake_session_create_schema);
PGDLLEXPORT Datum snowflake_session_create_schema(PG_FUNCTION_ARGS)
{
    define_schema(session::Kind::create, fcinfo);
    PG_RETURN_VOID();
}

/* snowflake_internal.session_rename_schema(name name, new_name name) returns void */
PG_FUNCTION_INFO_V1(snowflake_session_rename_schema);
PGDLLEXPORT Datum snowflake_session_rename_schema(PG_FUNCTION_ARGS)
{
    define_schema(session::Kind::rename, fcinfo);
    PG_RETURN_VOID();
}

/* snowflake_internal.session_comment(catalog regclass, name name, comment text) returns void */
PG_FUNCTION_INFO_V1(snowflake_session_comment);
PGDLLEXPORT Datum snowflake_session_comment(PG_FUNCTION_ARGS)
{
    const Oid catalog = PG_GETARG_OID(0);
    if (catalog != PublicationRelationId && catalog != SubscriptionRelationId)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("%s is neither pg_publication nor pg_subscription",
                               errors::name_of(catalog))));
    StringInfoData request = session::request_of(session::Kind::comment);
    pq_sendint32(&request, GetUserId());
    pq_sendint32(&request, catalog);
    session::append_text(&request, NameStr(*PG_GETARG_NAME(1)));
    session::append_text(&request, text_argument(fcinfo, 2));
    session::ask(request);
    PG_RETURN_VOID();
}

/* snowflake_internal.session_problem(schema regnamespace, OUT problem text, OUT hint text) */
PG_FUNCTION_INFO_V1(snowflake_session_problem);
PGDLLEXPORT Datum snowflake_session_problem(PG_FUNCTION_ARGS)
{
    const Oid schema = PG_GETARG_OID(0);
    if (!SearchSysCacheExists1(NAMESPACEOID, ObjectIdGetDatum(schema)))
        return row_of_problem(fcinfo, {}); /* session_begin() tells it */
    return row_of_problem(fcinfo,
                          owner_session::problem_of(errors::owner_of_schema(schema), schema));
}

/* snowflake_internal.session_problem_of(role oid, OUT problem text, OUT hint text) */
PG_FUNCTION_INFO_V1(snowflake_session_problem_of);
PGDLLEXPORT Datum snowflake_session_problem_of(PG_FUNCTION_ARGS)
{
    return row_of_problem(fcinfo, owner_session::problem_of(PG_GETARG_OID(0)));
}

/* snowflake_internal.session_run(commands text) returns void */
PG_FUNCTION_INFO_V1(snowflake_session_run);
PGDLLEXPORT Datum snowflake_session_run(PG_FUNCTION_ARGS)
{
    session::ask(session::Kind::commands, text_argument(fcinfo, 0));
    PG_RETURN_VOID();
}

/* snowflake_internal.session_script(statements text) returns void */
PG_FUNCTION_INFO_V1(snowflake_session_script);
PGDLLEXPORT Datum snowflake_session_script(PG_FUNCTION_ARGS)
{
    session::ask(session::Kind::script, text_argument(fcinfo, 0));
    PG_RETURN_VOID();
}

/*
 * snowflake_internal.session_alone(statement text): a procedure, so that the caller's snapshot can
 * end before: CREATE INDEX CONCURRENTLY in the session waits for it (WaitForOlderSnapshots()).
 */
PG_FUNCTION_INFO_V1(snowflake_session_alone);
PGDLLEXPORT Datum snowflake_session_alone(PG_FUNCTION_ARGS)
{
    const auto* context = reinterpret_cast<const CallContext*>(fcinfo->context);
    const MemoryContext memory = CurrentMemoryContext;
    if (context == nullptr || !IsA(context, CallContext) || context->atomic)
        ereport(ERROR, (errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
                        errmsg("CALL it at the top level, in no transaction")));
    if (PG_ARGISNULL(0)) /* a procedure cannot be STRICT */
        ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("the statement is NULL")));
    SPI_connect_ext(SPI_OPT_NONATOMIC);
    const char* statement =
        MemoryContextStrdup(PortalContext, text_argument(fcinfo, 0)); /* outlives the commit */
    SPI_commit();
    InvalidateCatalogSnapshot();
    session::ask(session::Kind::alone, statement);
    SPI_finish();
    MemoryContextSwitchTo(memory);
    if (session::is_in_transaction())
        ereport(ERROR, (errcode(ERRCODE_INVALID_TRANSACTION_TERMINATION),
                        errmsg("the SQL left a transaction open: it is rolled back")));
    PG_RETURN_VOID();
}

/* snowflake_internal.session_query(query text [, bigint, bigint], OUT name text, OUT type oid) */
PG_FUNCTION_INFO_V1(snowflake_session_query);
PGDLLEXPORT Datum snowflake_session_query(PG_FUNCTION_ARGS)
{
    pg::begin_rows(fcinfo, 0);
    session::ask(query_request(fcinfo), text_argument(fcinfo, 0),
                 {put_columns, nullptr, fcinfo->resultinfo});
    return Datum{0};
}

/* snowflake_internal.session_fetch(most integer) returns setof record */
PG_FUNCTION_INFO_V1(snowflake_session_fetch);
PGDLLEXPORT Datum snowflake_session_fetch(PG_FUNCTION_ARGS)
{
    pg::begin_rows(fcinfo, pg::kRowsAsExpected);
    session::ask(session::Kind::commands,
                 psprintf("FETCH FORWARD %d FROM snowflake_rows", PG_GETARG_INT32(0)),
                 {nullptr, put_row, fcinfo->resultinfo});
    return Datum{0};
}

/* snowflake_internal.session_rows(tbl regclass, query text) returns setof record */
PG_FUNCTION_INFO_V1(snowflake_session_rows);
PGDLLEXPORT Datum snowflake_session_rows(PG_FUNCTION_ARGS)
{
    pg::begin_rows(fcinfo, pg::kRowsAsExpected);
    const Oid table = PG_GETARG_OID(0);
    const char* query = text_argument(fcinfo, 1);
    owner_session::begin_of_table(table, "READ ONLY");
    StringInfoData request = owner_session::request_of(session::Kind::table, table);
    session::append_text(&request, query);
    session::ask(request, query, {nullptr, put_row, fcinfo->resultinfo});
    session::ask(session::Kind::commands, "COMMIT");
    return Datum{0};
}
}
