#include "query.h"

using namespace snowflake;

namespace
{

constexpr const char* kCursor = "snowflake_rows";

[[noreturn]] void not_one_query()
{
    ereport(ERROR, (errcode(ERRCODE_SYNTAX_ERROR), errmsg("the text is not one query")));
}

bool has_parameter(Node* node, void* state)
{
    if (node == nullptr)
        return false;
    if (IsA(node, Param))
        return reinterpret_cast<const Param*>(node)->paramkind == PARAM_EXTERN;
    if (IsA(node, Query))
        return pg::walk_query(reinterpret_cast<Query*>(node), has_parameter, state);
    return pg::walk_children(node, has_parameter, state);
}

/* A LIMIT of other rows is no problem: that of the newest comment of each photo. */
bool has_limit(Node* node, void* state)
{
    if (node == nullptr)
        return false;
    if (!IsA(node, Query))
        return pg::walk_children(node, has_limit, state);
    auto* query = reinterpret_cast<Query*>(node);
    const bool is_limited = query->limitCount != nullptr || query->limitOffset != nullptr;
    return (is_limited && has_parameter(node, state)) || pg::walk_query(query, has_limit, state);
}

/*
 * A query of new rows reads those after the ID $1, up to the settled ID $2, and the next one begins
 * after $2. So rows that a LIMIT or OFFSET leaves out would be read by none. plan: as it was
 * parsed; views are not replaced yet.
 */
void require_new_rows(SPIPlanPtr plan)
{
    const auto* source = static_cast<CachedPlanSource*>(linitial(SPI_plan_get_plan_sources(plan)));
    const auto* utility = linitial_node(Query, source->query_list);
    if (has_limit(castNode(DeclareCursorStmt, utility->utilityStmt)->query, nullptr))
        ereport(ERROR,
                (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                 errmsg("a query of new rows has a LIMIT or OFFSET beside $1 or $2"),
                 errdetail("The next query begins after $2, so rows that are left out are never "
                           "read."),
                 errhint("Leave it out: rows are printed as they arrive, and need no memory.")));
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
        require_new_rows(plan);
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
