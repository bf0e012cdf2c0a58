/* SQL functions that know statements by the grammar alone: no name in the text is looked up, and
 * nothing of it runs. */
#include "pg.h"

using namespace snowflake;

namespace
{

/* An error of the grammar is at a position of the text, and not of the statement that calls us. */
void tell_position_in_text(void* text)
{
    const int position = geterrposition();
    if (position == 0)
        return;
    errposition(0);
    internalerrposition(position);
    internalerrquery(static_cast<const char*>(text));
}

List* parse(char* text)
{
    ErrorContextCallback callback = {error_context_stack, tell_position_in_text, text};
    error_context_stack = &callback;
    List* statements = pg_parse_query(text);
    error_context_stack = callback.previous;
    return statements;
}

} // namespace

extern "C" {

/* snowflake_internal.has_statements(statements text) returns boolean */
PG_FUNCTION_INFO_V1(snowflake_has_statements);
PGDLLEXPORT Datum snowflake_has_statements(PG_FUNCTION_ARGS)
{
    PG_RETURN_BOOL(parse(text_to_cstring(PG_GETARG_TEXT_PP(0))) != NIL);
}

/* snowflake_internal.ends_transaction(statements text) returns boolean */
PG_FUNCTION_INFO_V1(snowflake_ends_transaction);
PGDLLEXPORT Datum snowflake_ends_transaction(PG_FUNCTION_ARGS)
{
    ListCell* cell = nullptr;
    foreach (cell, parse(text_to_cstring(PG_GETARG_TEXT_PP(0))))
        if (IsA(lfirst_node(RawStmt, cell)->stmt, TransactionStmt))
            PG_RETURN_BOOL(true);
    PG_RETURN_BOOL(false);
}
}
