/*
 * SQL functions that run text in a shard with the rights of the shard's owner. Objects of the shard
 * can hold code of that owner: a superuser's query of a view would run it as the superuser.
 *
 * SET ROLE would not help, because code that runs in the session can reset the role. So the text
 * runs as the query of REFRESH MATERIALIZED VIEW does (ExecRefreshMatView()): the current user is
 * the owner, and a security-restricted operation refuses everything that could outlast it, or lead
 * back: SET ROLE, SET SESSION AUTHORIZATION, temporary tables, PREPARE, LISTEN, DISCARD, cursors
 * WITH HOLD, deferred triggers. Settings that the text changes get their old values at the end. An
 * error ends all of that, too: AbortTransaction() and AbortSubTransaction() restore the user.
 *
 * Whether the owner's rights hold, or the caller's, is decided in owner.cpp.
 */
#include "errors.h"
#include "guard.h"
#include "owner.h"
#include "owner_plan.h"
#include "pg.h"

using namespace snowflake;

namespace
{

[[noreturn]] void not_one_query()
{
    ereport(ERROR, (errcode(ERRCODE_SYNTAX_ERROR), errmsg("the text is not one query")));
}

constexpr const char* kCursor = "snowflake_rows";

/* A NULL argument is impossible: the functions are STRICT. */
const char* text_argument(FunctionCallInfo fcinfo, int index)
{
    return text_to_cstring(PG_GETARG_TEXT_PP(index));
}

/* Statements are parsed one after the other, as in a script (SPI_execute() makes one-shot plans). A
 * statement that runs in no function is an error: 25001, as the server has it; 2D000 for BEGIN,
 * COMMIT and the like; 0A000 for COPY FROM STDIN. */
void run(const char* statements)
{
    SPIExecuteOptions options = {};
    options.dest = CreateDestReceiver(DestNone); /* rows of a SELECT fill no memory */
    /* pg_stat_activity shows the statements, and not the call of this function. */
    pgstat_report_activity(STATE_RUNNING, statements);
    SPI_connect();
    /* A trigger that is to fire at COMMIT, without the rights of the owner, is an error here
     * (afterTriggerMarkEvents()). So all fire at the end of their statement. */
    SPI_execute("SET CONSTRAINTS ALL IMMEDIATE", false, 0);
    const int result = SPI_execute_extended(statements, &options);
    if (result == SPI_ERROR_TRANSACTION)
        ereport(ERROR, (errcode(ERRCODE_INVALID_TRANSACTION_TERMINATION),
                        errmsg("the SQL begins or ends a transaction itself")));
    if (result == SPI_ERROR_COPY)
        ereport(ERROR,
                (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                 errmsg("COPY FROM STDIN and COPY TO STDOUT are not possible here: use psql")));
    if (result < 0)
        elog(ERROR, "SPI_execute_extended failed: %s", SPI_result_code_string(result));
    SPI_finish();
}

/* DECLARE takes the queries that snowflake-shard query takes outside of this, and no other: one
 * SELECT, VALUES, TABLE or WITH that changes nothing. A cursor of that name that code of the shard
 * has opened while the text was parsed is an error. */
SPIPlanPtr prepare(const char* query)
{
    const SPIPlanPtr plan =
        SPI_prepare(psprintf("DECLARE %s NO SCROLL CURSOR FOR\n%s", kCursor, query), 0, nullptr);
    if (plan == nullptr || list_length(SPI_plan_get_plan_sources(plan)) != 1)
        not_one_query();
    return plan;
}

/* The query is rewritten and planned here (PerformCursorOpen()). */
Portal open(SPIPlanPtr plan)
{
    SPI_execute_plan(plan, nullptr, nullptr, false, 0);
    const Portal portal = SPI_cursor_find(kCursor);
    if (portal == nullptr || portal->tupDesc == nullptr)
        not_one_query();
    return portal;
}

/* The caller has read the columns before, and a client may have changed the table since. */
void require_columns(TupleDesc expected, TupleDesc actual)
{
    bool is_equal = expected->natts == actual->natts;
    for (int i = 0; i < expected->natts; i++)
        is_equal = is_equal && TupleDescAttr(expected, i)->atttypid == TEXTOID;
    if (!is_equal)
        ereport(ERROR,
                (errcode(ERRCODE_DATATYPE_MISMATCH),
                 errmsg("the query has other columns than the call names: %d, not %d of type text",
                        actual->natts, expected->natts)));
}

/* Takes the rows one by one: a batch of wide ones could need more memory than there is. */
struct Receiver {
    DestReceiver base; /* first: PostgreSQL knows this part only */
    const ReturnSetInfo* result;
    MemoryContext row;
    FmgrInfo* outputs;
    Datum* values;
    bool* nulls;
};

/* The output functions of the types run here, with the rights of the owner, too. */
bool receive_row(TupleTableSlot* slot, DestReceiver* self)
{
    auto* receiver = reinterpret_cast<Receiver*>(self);
    const MemoryContext context = MemoryContextSwitchTo(receiver->row);
    slot_getallattrs(slot);
    for (int i = 0; i < slot->tts_tupleDescriptor->natts; i++) {
        const bool is_null = slot->tts_isnull[i];
        receiver->nulls[i] = is_null;
        receiver->values[i] = is_null ? Datum{0}
                                      : CStringGetTextDatum(OutputFunctionCall(
                                            &receiver->outputs[i], slot->tts_values[i]));
    }
    tuplestore_putvalues(receiver->result->setResult, receiver->result->setDesc, receiver->values,
                         receiver->nulls);
    MemoryContextSwitchTo(context);
    MemoryContextReset(receiver->row);
    return true;
}

Receiver* make_receiver(TupleDesc columns, const ReturnSetInfo* result)
{
    const auto count = static_cast<std::size_t>(columns->natts);
    auto* receiver = static_cast<Receiver*>(palloc0(sizeof(Receiver)));
    receiver->base.receiveSlot = receive_row;
    receiver->base.rStartup = [](DestReceiver*, int, TupleDesc) {};
    receiver->base.rShutdown = [](DestReceiver*) {};
    receiver->base.mydest = DestTuplestore;
    receiver->result = result;
    receiver->row =
        AllocSetContextCreate(CurrentMemoryContext, "rows_as_owner", ALLOCSET_DEFAULT_SIZES);
    receiver->outputs = static_cast<FmgrInfo*>(palloc(sizeof(FmgrInfo) * count));
    receiver->values = static_cast<Datum*>(palloc(sizeof(Datum) * count));
    receiver->nulls = static_cast<bool*>(palloc(sizeof(bool) * count));
    for (int i = 0; i < columns->natts; i++) {
        Oid output = InvalidOid;
        bool is_varlena = false;
        getTypeOutputInfo(TupleDescAttr(columns, i)->atttypid, &output, &is_varlena);
        fmgr_info(output, &receiver->outputs[i]);
    }
    return receiver;
}

/* All rows are in the result, in memory of work_mem or a temporary file, before the caller gets the
 * first: no code of the shard runs after the end of the restricted operation. */
void put_all_rows(SPIPlanPtr plan, const ReturnSetInfo* result)
{
    const Portal portal = open(plan);
    require_columns(result->setDesc, portal->tupDesc);
    PortalRunFetch(portal, FETCH_FORWARD, FETCH_ALL, &make_receiver(portal->tupDesc, result)->base);
    SPI_cursor_close(portal);
}

struct Rows {
    const char* query;
    SPIPlanPtr plan;
    const ReturnSetInfo* result;
};

/* Names are looked up with the rights of the caller: an owner can have no USAGE on the schema. The
 * parser reads literals, and with an array of a domain this runs the domain's CHECK
 * (domain_check_input()). So it is guarded: the query can have an expression of the owner. */
void prepare_as_caller(void* argument)
{
    auto* rows = static_cast<Rows*>(argument);
    const int settings = NewGUCNestLevel();
    owner::set("search_path", "");
    rows->plan = prepare(rows->query);
    AtEOXact_GUC(false, settings);
}

void put_rows_of_table(void* argument)
{
    const auto* rows = static_cast<const Rows*>(argument);
    put_all_rows(rows->plan, rows->result);
}

} // namespace

extern "C" {

/* snowflake_internal.is_callers(schema regnamespace) returns boolean */
PG_FUNCTION_INFO_V1(snowflake_is_callers);
PGDLLEXPORT Datum snowflake_is_callers(PG_FUNCTION_ARGS)
{
    PG_RETURN_BOOL(owner::is_callers(PG_GETARG_OID(0)));
}

/* snowflake_internal.run_as_role(role name, statements text) returns void */
PG_FUNCTION_INFO_V1(snowflake_run_as_role);
PGDLLEXPORT Datum snowflake_run_as_role(PG_FUNCTION_ARGS)
{
    char* statements = text_to_cstring(PG_GETARG_TEXT_PP(1));
    const Oid role = get_role_oid(NameStr(*PG_GETARG_NAME(0)), false);
    owner::Rights rights = {};
    owner::become_role(rights, role);
    owner_plan::guard(
        role, [](void* argument) { run(static_cast<const char*>(argument)); }, statements);
    owner::become_again(rights);
    PG_RETURN_VOID();
}

/* snowflake_internal.rows_as_table_owner(tbl regclass, query text) returns setof record */
PG_FUNCTION_INFO_V1(snowflake_rows_as_table_owner);
PGDLLEXPORT Datum snowflake_rows_as_table_owner(PG_FUNCTION_ARGS)
{
    pg::begin_rows(fcinfo, pg::kRowsAsExpected);
    const Oid table = PG_GETARG_OID(0);
    Rows rows = {text_argument(fcinfo, 1), nullptr,
                 reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo)};
    SPI_connect();
    guard::call(prepare_as_caller, &rows);
    owner::Rights rights = {};
    const Oid owner = owner::become_of_table(rights, table);
    owner_plan::expect(table, owner, put_rows_of_table, &rows);
    owner::become_again(rights);
    SPI_finish();
    return Datum{0};
}
}
