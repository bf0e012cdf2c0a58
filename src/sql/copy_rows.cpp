/* The SQL function that inserts rows in a format of COPY. */
#include "errors.h"
#include "owner.h"
#include "pg.h"

using namespace snowflake;

namespace
{

/* COPY asks for bytes by a function without an argument of ours (copy_data_source_cb). */
struct Piece {
    const char* data;
    int left;
};

Piece piece = {};

int read_piece(void* target, int, int most)
{
    const int length = Min(piece.left, most);
    memcpy(target, piece.data, static_cast<std::size_t>(length));
    piece.data += length;
    piece.left -= length;
    return length;
}

/* Not inlined: the compiler warns of its variables where PG_TRY() is. */
[[gnu::noinline]] List* names_of(ArrayType* array)
{
    Datum* values = nullptr;
    int count = 0;
    deconstruct_array(array, TEXTOID, -1, false, TYPALIGN_INT, &values, nullptr, &count);
    List* names = nullptr;
    for (int i = 0; i < count; i++)
        names = lappend(names, makeString(TextDatumGetCString(values[i])));
    return names;
}

/* Inserts the rows as copy_table() of the table synchronization does. */
std::uint64_t insert(Relation table, List* columns, char* format)
{
    ParseState* state = make_parsestate(nullptr);
    addRangeTableEntryForRelation(state, table, RowExclusiveLock, nullptr, false, false);
    List* options =
        list_make1(makeDefElem(pstrdup("format"), reinterpret_cast<Node*>(makeString(format)), -1));
    CopyFromState copy =
        BeginCopyFrom(state, table, nullptr, nullptr, false, read_piece, columns, options);
    const std::uint64_t count = CopyFrom(copy);
    EndCopyFrom(copy);
    return count;
}

} // namespace

extern "C" {

/*
 * snowflake_internal.copy_rows(tbl regclass, columns text[], format text, rows bytea) returns
 * bigint
 *
 * rows: a whole input of COPY ... FROM STDIN in the format text, csv or binary, in the session's
 * client_encoding. Defaults, generated columns and constraints of the table run as in COPY, with
 * the rights of the table's owner, in a security-restricted operation. Triggers fire as in an apply
 * worker, because the rows have fired them where they come from: only those that are ENABLE ALWAYS
 * or REPLICA, and no foreign key is checked. To logical decoding the rows are replicated ones: a
 * reader of this server alone (origin = none) gets none of them.
 *
 *   42P01, 42809   no such relation, no ordinary table
 *   42501, 25006   the caller may not act as the owner; a read-only transaction
 *   42703, 22P04 and others of COPY, whose CONTEXT names table, line and column
 */
PG_FUNCTION_INFO_V1(snowflake_copy_rows);
PGDLLEXPORT Datum snowflake_copy_rows(PG_FUNCTION_ARGS)
{
    PreventCommandIfReadOnly("snowflake_internal.copy_rows()");
    const Oid oid = PG_GETARG_OID(0);
    LockRelationOid(oid, RowExclusiveLock);
    const Oid owner = owner::of_table(oid); /* 42P01, where table_open() has an internal error */
    const Relation table = table_open(oid, NoLock);
    errors::require_ordinary_table(table);
    List* columns = names_of(PG_GETARG_ARRAYTYPE_P(1));
    char* format = text_to_cstring(PG_GETARG_TEXT_PP(2));
    const bytea* rows = PG_GETARG_BYTEA_PP(3);
    owner::Rights rights = {};
    owner::become_role(rights, owner);
    /* The setting lasts until become_again(). owner::set() is not used: only a superuser may set
     * it. */
    set_config_option("session_replication_role", "replica", PGC_SUSET, PGC_S_SESSION,
                      GUC_ACTION_SAVE, true, 0, false);
    /* A trigger of the table can call this function, too, and catch its error. */
    const Piece before = piece;
    const auto origin = pg::origin_of_writes();
    std::uint64_t count = 0;
    PG_TRY();
    {
        pg::origin_of_writes() = DoNotReplicateId;
        piece = {VARDATA_ANY(rows), static_cast<int>(VARSIZE_ANY_EXHDR(rows))};
        count = insert(table, columns, format);
    }
    PG_FINALLY();
    {
        piece = before;
        pg::origin_of_writes() = origin;
    }
    PG_END_TRY();
    owner::become_again(rights);
    table_close(table, NoLock);
    PG_RETURN_INT64(static_cast<std::int64_t>(count));
}
}
