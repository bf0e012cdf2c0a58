/* The SQL function that inserts rows in a format of COPY, in a session of the table's owner. */
#include "owner_session.h"
#include "pg.h"

using namespace snowflake;

namespace
{

void append_names(StringInfo request, ArrayType* array)
{
    Datum* names = nullptr;
    int count = 0;
    deconstruct_array(array, TEXTOID, -1, false, TYPALIGN_INT, &names, nullptr, &count);
    pq_sendint16(request, static_cast<std::uint16_t>(count));
    for (int i = 0; i < count; i++)
        session::append_text(request, TextDatumGetCString(names[i]));
}

void take_count(StringInfo row, void* state)
{
    pq_getmsgint(row, 2);
    const int length = static_cast<int>(pq_getmsgint(row, 4));
    const char* digits = pnstrdup(pq_getmsgbytes(row, length), static_cast<Size>(length));
    *static_cast<std::int64_t*>(state) = pg_strtoint64(digits);
}

} // namespace

extern "C" {

/*
 * snowflake_internal.copy_rows(tbl regclass, columns text[], format text, rows bytea) returns
 * bigint
 *
 * rows: a whole input of COPY ... FROM STDIN in the format text, csv or binary, in the encoding of
 * the database. It is a transaction of the session, with the caller's synchronous_commit; in a
 * transaction block of the caller it goes on with the next call, and ends by session_run('COMMIT').
 * All of the table runs as in a COPY of its owner: defaults, generated columns, constraints,
 * triggers. To logical decoding the rows are replicated ones.
 *
 *   42P01, 42809   no such relation, no ordinary table
 *   42501, 25006   the caller may not act as the owner; a read-only transaction
 *   42703, 22P04 and others of COPY, whose CONTEXT names table, line and column
 */
PG_FUNCTION_INFO_V1(snowflake_copy_rows);
PGDLLEXPORT Datum snowflake_copy_rows(PG_FUNCTION_ARGS)
{
    PreventCommandIfReadOnly("snowflake_internal.copy_rows()");
    const Oid table = PG_GETARG_OID(0);
    const bytea* rows = PG_GETARG_BYTEA_PP(3);
    if (!session::is_in_transaction())
        owner_session::begin_of_table(table, "READ WRITE");
    StringInfoData request = owner_session::request_of(session::Kind::copy, table);
    append_names(&request, PG_GETARG_ARRAYTYPE_P(1));
    session::append_text(&request, text_to_cstring(PG_GETARG_TEXT_PP(2)));
    std::int64_t count = 0;
    session::ask(request, "", {nullptr, take_count, &count},
                 {VARDATA_ANY(rows), VARSIZE_ANY_EXHDR(rows)});
    if (!IsTransactionBlock())
        session::ask(session::Kind::commands, "COMMIT");
    PG_RETURN_INT64(count);
}
}
