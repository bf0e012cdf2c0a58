#include "query.h"
#include "new_rows.h"

using namespace snowflake;

namespace
{

constexpr const char* kCursor = "snowflake_rows";

[[noreturn]] void not_one_query()
{
    ereport(ERROR, (errcode(ERRCODE_SYNTAX_ERROR), errmsg("the text is not one query")));
}

/* DECLARE takes the queries that snowflake-shard query takes, and no other: one SELECT, VALUES,
 * TABLE or WITH that changes nothing. A cursor of that name that code of the shard has opened while
 * the text was parsed is an error. */
SPIPlanPtr prepare(const char* text, int count)
{
    Oid types[] = {INT8OID, INT8OID};
    const SPIPlanPtr plan =
        SPI_prepare(psprintf("DECLARE %s NO SCROLL CURSOR FOR\n%s", kCursor, text), count, types);
    if (plan == nullptr || list_length(SPI_plan_get_plan_sources(plan)) != 1)
        not_one_query();
    if (count > 0)
        new_rows::require_all(plan);
    return plan;
}

void send_columns(Portal portal)
{
    StringInfoData message;
    initStringInfo(&message);
    SendRowDescriptionMessage(&message, portal->tupDesc, FetchPortalTargetList(portal),
                              portal->formats);
}

} // namespace

/* The query is rewritten and planned by SPI_execute_plan() (PerformCursorOpen()). */
void session::query::open(const char* sql, int count, Datum* parameters)
{
    debug_query_string = sql;
    pgstat_report_activity(STATE_RUNNING, sql);
    SPI_connect();
    PushActiveSnapshot(GetTransactionSnapshot());
    SPI_execute_plan(prepare(sql, count), parameters, nullptr, false, 0);
    const Portal portal = SPI_cursor_find(kCursor);
    if (portal == nullptr || portal->tupDesc == nullptr)
        not_one_query();
    send_columns(portal);
    PopActiveSnapshot();
    SPI_finish();
}
