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

/* A string whose type the parser has to find. The type can be the owner's, an array of a domain for
 * example, and then its input runs the CHECK of the domain. */
bool has_untyped_text(Node* node, void* state)
{
    if (node == nullptr)
        return false;
    if (IsA(node, A_Const)) {
        const auto* constant = reinterpret_cast<A_Const*>(node);
        return !constant->isnull && (IsA(&constant->val, String) || IsA(&constant->val, BitString));
    }
    if (IsA(node, TypeCast)) {
        const auto* cast = reinterpret_cast<TypeCast*>(node);
        const List* names = cast->typeName->names;
        /* pg_catalog is searched before the schemas of search_path. */
        const bool is_builtin =
            list_length(names) == 1
                ? SearchSysCacheExists2(TYPENAMENSP, PointerGetDatum(strVal(linitial(names))),
                                        ObjectIdGetDatum(PG_CATALOG_NAMESPACE))
                : list_length(names) == 2 && strcmp(strVal(linitial(names)), "pg_catalog") == 0;
        if (IsA(cast->arg, A_Const) && is_builtin)
            return false;
    }
    return pg::walk_parsed_children(node, has_untyped_text, state);
}

/* PostgreSQL makes and reads an index as the table's owner, in a security-restricted operation
 * (DefineIndex(), index_concurrently_build()), and so the code in its expressions. Only the parser
 * has worked before, with the rights of the caller: see has_untyped_text(). */
bool is_safe_index(const IndexStmt* index)
{
    if (!index->concurrent || has_untyped_text(index->whereClause, nullptr))
        return false;
    ListCell* cell = nullptr;
    foreach (cell, index->indexParams)
        if (has_untyped_text(lfirst_node(IndexElem, cell)->expr, nullptr))
            return false;
    return true;
}

} // namespace

extern "C" {

/* snowflake_internal.is_maintenance(statement text) returns boolean */
PG_FUNCTION_INFO_V1(snowflake_is_maintenance);
PGDLLEXPORT Datum snowflake_is_maintenance(PG_FUNCTION_ARGS)
{
    const List* statements = parse(text_to_cstring(PG_GETARG_TEXT_PP(0)));
    if (list_length(statements) != 1)
        PG_RETURN_BOOL(false);
    const Node* statement = linitial_node(RawStmt, statements)->stmt;
    switch (nodeTag(statement)) {
    case T_VacuumStmt: /* ANALYZE, too */
    case T_ReindexStmt:
        PG_RETURN_BOOL(true);
    case T_DropStmt:
        PG_RETURN_BOOL(reinterpret_cast<const DropStmt*>(statement)->concurrent);
    case T_IndexStmt:
        PG_RETURN_BOOL(is_safe_index(reinterpret_cast<const IndexStmt*>(statement)));
    default:
        PG_RETURN_BOOL(false);
    }
}

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
