#include "new_rows.h"

using namespace snowflake;

namespace
{

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

} // namespace

/* The query as it was parsed: views are not replaced yet. */
void new_rows::require_all(SPIPlanPtr plan)
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
