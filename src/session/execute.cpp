/*
 * Statements run at the top level, as exec_simple_query() runs them: a session of PostgreSQL's own
 * has no function for that. So VACUUM and CREATE INDEX CONCURRENTLY are possible, too.
 */
#include "execute.h"
#include "as_caller.h"
#include "channel.h"
#include "copy.h"
#include "errors.h"
#include "query.h"
#include "table.h"

using namespace snowflake;
using namespace snowflake::session;

namespace
{

bool ends_transaction(const Node* statement)
{
    if (!IsA(statement, TransactionStmt))
        return false;
    const TransactionStmtKind kind = reinterpret_cast<const TransactionStmt*>(statement)->kind;
    return kind == TRANS_STMT_COMMIT || kind == TRANS_STMT_ROLLBACK ||
           kind == TRANS_STMT_ROLLBACK_TO || kind == TRANS_STMT_PREPARE;
}

/* There is no client whose rows could be read. */
void refuse_copy(const Node* statement)
{
    if (IsA(statement, CopyStmt) &&
        reinterpret_cast<const CopyStmt*>(statement)->filename == nullptr)
        ereport(ERROR,
                (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                 errmsg("COPY FROM STDIN and COPY TO STDOUT are not possible here: use psql")));
}

void refuse_transaction(const Node* statement)
{
    if (IsA(statement, TransactionStmt))
        ereport(ERROR, (errcode(ERRCODE_INVALID_TRANSACTION_TERMINATION),
                        errmsg("the SQL begins or ends a transaction itself")));
}

List* parse(const char* text, Kind kind)
{
    List* statements = pg_parse_query(text);
    if ((kind == Kind::alone || kind == Kind::table) && list_length(statements) != 1)
        ereport(ERROR, (errcode(ERRCODE_SYNTAX_ERROR), errmsg("the text is not one statement")));
    ListCell* cell = nullptr;
    foreach (cell, statements) {
        const Node* statement = lfirst_node(RawStmt, cell)->stmt;
        refuse_copy(statement);
        if (kind == Kind::script)
            refuse_transaction(statement);
    }
    return statements;
}

/* StartTransactionCommand() does not refuse it. */
void start_statement()
{
    if (IsAbortedTransactionBlockState())
        ereport(ERROR, (errcode(ERRCODE_IN_FAILED_SQL_TRANSACTION),
                        errmsg("current transaction is aborted, commands ignored until end of "
                               "transaction block")));
    StartTransactionCommand();
}

/* of: the query is one of this table alone; null if it may be any. */
List* rewrite(RawStmt* statement, const char* text, const table::OfOwner* of)
{
    Query* query = parse_analyze_fixedparams(statement, text, nullptr, 0, nullptr);
    if (of != nullptr)
        table::require_names(query, *of);
    return pg_rewrite_query(query);
}

/* memory outlives the transaction, which the statement may end. */
Portal plan(RawStmt* statement, const char* text, MemoryContext memory, const table::OfOwner* of)
{
    const MemoryContext of_transaction = MemoryContextSwitchTo(memory);
    const bool has_snapshot = analyze_requires_snapshot(statement);
    if (has_snapshot)
        PushActiveSnapshot(GetTransactionSnapshot());
    List* plans =
        pg_plan_queries(rewrite(statement, text, of), text, CURSOR_OPT_PARALLEL_OK, nullptr);
    if (has_snapshot)
        PopActiveSnapshot();
    const Portal portal = CreatePortal("", true, true);
    portal->visible = false;
    PortalDefineQuery(portal, nullptr, text, CreateCommandTag(statement->stmt), plans, nullptr);
    PortalStart(portal, nullptr, 0, InvalidSnapshot);
    std::int16_t text_format = 0;
    PortalSetResultFormat(portal, 1, &text_format);
    MemoryContextSwitchTo(of_transaction);
    return portal;
}

/* Rows that nobody reads fill no queue. */
void run(RawStmt* statement, const char* text, MemoryContext memory, CommandDest dest,
         const table::OfOwner* of)
{
    if (ends_transaction(statement->stmt))
        StartTransactionCommand();
    else
        start_statement();
    const Portal portal = plan(statement, text, memory, of);
    DestReceiver* receiver = CreateDestReceiver(dest);
    if (dest == DestRemote)
        SetRemoteDestReceiverParams(receiver, portal);
    pg::run_portal(portal, receiver);
    receiver->rDestroy(receiver);
    PortalDrop(portal, false);
    CommitTransactionCommand();
}

void run_all(const char* sql, Kind kind, MemoryContext memory, const table::OfOwner* of = nullptr)
{
    debug_query_string = sql;
    pgstat_report_activity(STATE_RUNNING, sql);
    const CommandDest dest = kind == Kind::commands || kind == Kind::table ? DestRemote : DestNone;
    ListCell* cell = nullptr;
    foreach (cell, parse(sql, kind)) {
        CHECK_FOR_INTERRUPTS();
        run(lfirst_node(RawStmt, cell), sql, memory, dest, of);
    }
}

/* In a transaction of the caller DROP SCHEMA waits for the lock. */
void use_schema(Oid schema, Oid role)
{
    start_statement();
    LockDatabaseObject(NamespaceRelationId, schema, 0, AccessShareLock);
    const Oid owner = errors::owner_of_schema(schema);
    const char* name = get_namespace_name(schema);
    if (owner != role)
        ereport(ERROR,
                (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                 errmsg("schema %s was given to another role meanwhile", quote_identifier(name))));
    /* Temporary objects of the role come last, as in a SECURITY DEFINER function. */
    set_config_option("search_path", psprintf("%s, pg_temp", quote_identifier(name)), PGC_USERSET,
                      PGC_S_SESSION, GUC_ACTION_SET, true, 0, false);
    CommitTransactionCommand();
}

/* The caller reads all text in the encoding of the database. No error outside of a transaction: it
 * could not undo the statement. */
void require_encoding()
{
    if (IsTransactionBlock() && pg_get_client_encoding() != GetDatabaseEncoding())
        ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                        errmsg("the SQL has changed client_encoding to %s, and the session works "
                               "with %s only",
                               pg_get_client_encoding_name(), GetDatabaseEncodingName())));
}

/* The lock lasts until the end of the transaction block. */
void read_table(StringInfo request, Oid role, MemoryContext memory)
{
    const table::OfOwner of = {pq_getmsgint(request, 4), role};
    const bool waits = pq_getmsgbyte(request) != 0;
    start_statement();
    table::lock(of, AccessShareLock, waits);
    CommitTransactionCommand();
    run_all(pq_getmsgrawstring(request), Kind::table, memory, &of);
}

void copy_rows(StringInfo request, Oid role)
{
    const table::OfOwner of = {pq_getmsgint(request, 4), role};
    const bool waits = pq_getmsgbyte(request) != 0;
    debug_query_string = "COPY of snowflake-shard";
    pgstat_report_activity(STATE_RUNNING, debug_query_string);
    start_statement();
    PushActiveSnapshot(GetTransactionSnapshot());
    copy::insert(request, of, waits);
    PopActiveSnapshot();
    CommitTransactionCommand();
}

/* The bigint parameters of a query, then its text. */
void open_query(StringInfo request)
{
    Datum parameters[2] = {};
    const int count = static_cast<int>(pq_getmsgint(request, 1));
    for (int i = 0; i < count; i++)
        parameters[i] = Int64GetDatum(pq_getmsgint64(request));
    start_statement();
    query::open(pq_getmsgrawstring(request), count, parameters);
    CommitTransactionCommand();
}

void define_schema(StringInfo request, Kind kind, Oid role)
{
    const Oid caller = pq_getmsgint(request, 4);
    const char* name = pq_getmsgrawstring(request);
    start_statement();
    if (kind == Kind::create)
        as_caller::create_schema(name, role, caller);
    else
        as_caller::rename_schema(name, pq_getmsgrawstring(request), role, caller);
    CommitTransactionCommand();
}

void comment(StringInfo request)
{
    const Oid caller = pq_getmsgint(request, 4);
    const Oid catalog = pq_getmsgint(request, 4);
    const char* name = pq_getmsgrawstring(request);
    start_statement();
    as_caller::comment(catalog, name, pq_getmsgrawstring(request), caller);
    CommitTransactionCommand();
}

} // namespace

void session::execute(StringInfo request, Oid role, MemoryContext memory)
{
    const auto kind = static_cast<Kind>(pq_getmsgbyte(request));
    switch (kind) {
    case Kind::commands:
    case Kind::script:
    case Kind::alone:
        run_all(pq_getmsgrawstring(request), kind, memory);
        break;
    case Kind::query:
        open_query(request);
        break;
    case Kind::table:
        read_table(request, role, memory);
        break;
    case Kind::copy:
        copy_rows(request, role);
        break;
    case Kind::schema:
        use_schema(pq_getmsgint(request, 4), role);
        break;
    case Kind::create:
    case Kind::rename:
        define_schema(request, kind, role);
        break;
    case Kind::comment:
        comment(request);
        break;
    }
    require_encoding();
}
