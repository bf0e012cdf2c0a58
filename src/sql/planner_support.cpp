/*
 * The planner's view of snowflake_between(id, from_ts, to_ts): two comparisons of id, so that an
 * index on id, and statistics of it, serve the function. It is not an SQL function that the planner
 * inlines, because an AND would make that one non-strict.
 */
#include "registry/native_functions.h"
#include "pg.h"

namespace
{

enum Argument { kId, kFrom, kTo };
constexpr int kArguments = 3;

/* snowflake_min_id(timestamptz), which stands in the schema of the function that asks. */
Oid min_id_function(Oid asking)
{
    const Oid argument = TIMESTAMPTZOID;
    return snowflake::registry::function_in(get_func_namespace(asking), "snowflake_min_id",
                                            &argument, 1);
}

Expr* compare(Oid comparison, Node* id, Oid min_id, Node* timestamp)
{
    FuncExpr* bound = makeFuncExpr(min_id, INT8OID, list_make1(timestamp), InvalidOid, InvalidOid,
                                   COERCE_EXPLICIT_CALL);
    return make_opclause(comparison, BOOLOID, false, reinterpret_cast<Expr*>(id),
                         reinterpret_cast<Expr*>(bound), InvalidOid, InvalidOid);
}

/* id >= min_id(from_ts), id < min_id(to_ts); NIL where the function is not to be found. */
List* comparisons(Oid asking, List* arguments)
{
    const Oid min_id = min_id_function(asking);
    if (!OidIsValid(min_id) || list_length(arguments) != kArguments)
        return NIL;
    const Oid at_least =
        get_opfamily_member(INTEGER_BTREE_FAM_OID, INT8OID, INT8OID, BTGreaterEqualStrategyNumber);
    const Oid below =
        get_opfamily_member(INTEGER_BTREE_FAM_OID, INT8OID, INT8OID, BTLessStrategyNumber);
    if (!OidIsValid(at_least) || !OidIsValid(below))
        return NIL;
    auto* id = static_cast<Node*>(list_nth(arguments, kId));
    return list_make2(compare(at_least, id, min_id, static_cast<Node*>(list_nth(arguments, kFrom))),
                      compare(below, id, min_id, static_cast<Node*>(list_nth(arguments, kTo))));
}

/*
 * Exact, not lossy: the two comparisons are the function's own definition, and a NULL bound matches
 * no row in either form. Any index that can compare a bigint by both operators will do: btree,
 * BRIN.
 */
Node* index_condition(SupportRequestIndexCondition* request)
{
    if (!IsA(request->node, FuncExpr) || request->indexarg != kId)
        return nullptr;
    List* arguments = reinterpret_cast<FuncExpr*>(request->node)->args;
    List* conditions = comparisons(request->funcid, arguments);

    ListCell* cell = nullptr;
    foreach (cell, conditions) {
        auto* condition = static_cast<OpExpr*>(lfirst(cell));
        auto* bound = static_cast<Node*>(lsecond(condition->args));
        if (!op_in_opfamily(condition->opno, request->opfamily) ||
            !is_pseudo_constant_for_index(request->root, bound, request->index))
            return nullptr;
    }
    request->lossy = false;
    return reinterpret_cast<Node*>(conditions);
}

Node* selectivity(SupportRequestSelectivity* request)
{
    List* conditions = comparisons(request->funcid, request->args);
    if (conditions == NIL || request->is_join)
        return nullptr;
    request->selectivity = clauselist_selectivity(request->root, conditions, request->varRelid,
                                                  request->jointype, request->sjinfo);
    return reinterpret_cast<Node*>(request);
}

} // namespace

extern "C" {

/* snowflake_internal.between_support(internal) returns internal */
PG_FUNCTION_INFO_V1(snowflake_between_support);
PGDLLEXPORT Datum snowflake_between_support(PG_FUNCTION_ARGS)
{
    auto* request = reinterpret_cast<Node*>(PG_GETARG_POINTER(0));
    Node* answer = nullptr;
    if (IsA(request, SupportRequestIndexCondition))
        answer = index_condition(reinterpret_cast<SupportRequestIndexCondition*>(request));
    else if (IsA(request, SupportRequestSelectivity))
        answer = selectivity(reinterpret_cast<SupportRequestSelectivity*>(request));
    PG_RETURN_POINTER(answer);
}
}
