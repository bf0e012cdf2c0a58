#include "registry/stored_call.h"

namespace snowflake::catalog
{
namespace
{

/* SQL functions may call each other in a circle (CREATE OR REPLACE); nobody wraps this deep. */
constexpr int kMaxWrappers = 8;

struct Search {
    const NativeFunctions* natives;
    Call* call;
    int wrappers;
    List** functions; /* looked into already: there can be very many paths through a few of them */
};

bool read_function(Search search, Oid function);

/* Working memory for one object: trees of thousands of them must not add up. */
class ScratchMemory
{
public:
    ScratchMemory()
        : context_(AllocSetContextCreate(CurrentMemoryContext, "snowflake catalogue reading",
                                         ALLOCSET_DEFAULT_SIZES)),
          previous_(MemoryContextSwitchTo(context_))
    {
    }
    /* Not run when an error jumps past it; the parent context takes the memory along then. */
    ~ScratchMemory()
    {
        MemoryContextSwitchTo(previous_);
        MemoryContextDelete(context_);
    }
    ScratchMemory(const ScratchMemory&) = delete;
    ScratchMemory& operator=(const ScratchMemory&) = delete;

private:
    MemoryContext context_;
    MemoryContext previous_;
};

bool is_integer_cast(Oid function)
{
    switch (function) {
    case F_INT2_INT4:
    case F_INT2_INT8:
    case F_INT4_INT2:
    case F_INT4_INT8:
    case F_INT8_INT2:
    case F_INT8_INT4:
        return true;
    default:
        return false;
    }
}

/* A constant, or one in casts, the parser's own among them: the 0 of an epoch is an int4. */
const Const* constant_in(const Node* node)
{
    if (node == nullptr)
        return nullptr;
    if (IsA(node, Const)) {
        const auto* constant = reinterpret_cast<const Const*>(node);
        return constant->constisnull ? nullptr : constant;
    }
    if (IsA(node, RelabelType))
        return constant_in(
            reinterpret_cast<const Node*>(reinterpret_cast<const RelabelType*>(node)->arg));
    if (IsA(node, FuncExpr)) {
        const auto* cast = reinterpret_cast<const FuncExpr*>(node);
        if (is_integer_cast(cast->funcid))
            return constant_in(static_cast<const Node*>(linitial(cast->args)));
    }
    return nullptr;
}

bool read_integer(const Node* node, std::int64_t* value)
{
    const Const* constant = constant_in(node);
    if (constant == nullptr)
        return false;
    switch (constant->consttype) {
    case INT2OID:
        *value = DatumGetInt16(constant->constvalue);
        return true;
    case INT4OID:
        *value = DatumGetInt32(constant->constvalue);
        return true;
    case INT8OID:
        *value = DatumGetInt64(constant->constvalue);
        return true;
    default:
        return false;
    }
}

Oid read_sequence(const Node* node)
{
    const Const* constant = constant_in(node);
    if (constant == nullptr ||
        (constant->consttype != REGCLASSOID && constant->consttype != OIDOID))
        return InvalidOid;
    return DatumGetObjectId(constant->constvalue);
}

void read_arguments(const NativeFunctions& natives, const FuncExpr* expression, Call* call)
{
    *call = {InvalidOid, false, 0, InvalidOid, true, kInstagramEpoch, false};
    if (expression->funcid == natives.next_id_default) {
        call->sequence = natives.default_sequence; /* the shard is a setting: not known here */
        return;
    }
    std::int64_t number = 0;
    call->has_shard = read_integer(static_cast<const Node*>(linitial(expression->args)), &number);
    call->shard = call->has_shard ? static_cast<std::int32_t>(number) : 0;
    call->sequence = read_sequence(static_cast<const Node*>(lsecond(expression->args)));
    if (expression->funcid == natives.next_id_epoch) {
        call->has_epoch = read_integer(static_cast<const Node*>(lthird(expression->args)), &number);
        call->epoch = Epoch{call->has_epoch ? number : 0};
    }
}

bool is_native(const NativeFunctions& natives, const FuncExpr* expression)
{
    return expression->funcid == natives.next_id || expression->funcid == natives.next_id_epoch ||
           expression->funcid == natives.next_id_default;
}

/* SELECT expression, and no other clause. */
const Node* only_expression(const Query* query)
{
    const bool has_more = query->commandType != CMD_SELECT || query->rtable != NIL ||
                          query->cteList != NIL || query->jointree->quals != nullptr ||
                          query->groupClause != NIL || query->havingQual != nullptr ||
                          query->distinctClause != NIL || query->sortClause != NIL ||
                          query->limitCount != nullptr || query->limitOffset != nullptr ||
                          query->setOperations != nullptr || list_length(query->targetList) != 1;
    if (has_more)
        return nullptr;
    return reinterpret_cast<const Node*>(
        static_cast<const TargetEntry*>(linitial(query->targetList))->expr);
}

/* A body is one query, or lists around one; an expression may be cast to the type of its column. */
bool is_plain_call(const NativeFunctions& natives, const Node* node)
{
    while (node != nullptr) {
        if (IsA(node, FuncExpr))
            return is_native(natives, reinterpret_cast<const FuncExpr*>(node));
        if (IsA(node, List)) {
            const auto* list = reinterpret_cast<const List*>(node);
            node = list_length(list) == 1 ? static_cast<const Node*>(linitial(list)) : nullptr;
        } else if (IsA(node, Query)) {
            node = only_expression(reinterpret_cast<const Query*>(node));
        } else if (IsA(node, RelabelType)) {
            node = reinterpret_cast<const Node*>(reinterpret_cast<const RelabelType*>(node)->arg);
        } else if (IsA(node, CoerceViaIO)) {
            node = reinterpret_cast<const Node*>(reinterpret_cast<const CoerceViaIO*>(node)->arg);
        } else if (IsA(node, CoerceToDomain)) {
            node =
                reinterpret_cast<const Node*>(reinterpret_cast<const CoerceToDomain*>(node)->arg);
        } else {
            return false;
        }
    }
    return false;
}

/* Ends at the first call, wherever it stands in the expression. */
bool find_call(Node* node, void* state)
{
    if (node == nullptr)
        return false;
    if (IsA(node, Query))
        return pg::walk_query(reinterpret_cast<Query*>(node), find_call, state);
    if (IsA(node, FuncExpr)) {
        auto* search = static_cast<Search*>(state);
        const auto* expression = reinterpret_cast<const FuncExpr*>(node);
        const NativeFunctions& natives = *search->natives;
        if (is_native(natives, expression)) {
            read_arguments(natives, expression, search->call);
            return true;
        }
        if (read_function({search->natives, search->call, search->wrappers + 1, search->functions},
                          expression->funcid)) {
            search->call->through = expression->funcid;
            return true;
        }
    }
    return pg::walk_children(node, find_call, state);
}

bool read_tree(Search search, Datum stored)
{
    auto* tree = static_cast<Node*>(stringToNode(TextDatumGetCString(stored)));
    if (!find_call(tree, &search))
        return false;
    search.call->is_plain = is_plain_call(*search.natives, tree);
    return true;
}

/* Only a parsed body says what it calls; one in text, SQL or PL/pgSQL, is code of another kind. */
bool read_function(Search search, Oid function)
{
    CHECK_FOR_INTERRUPTS();
    if (search.wrappers > kMaxWrappers || function < FirstNormalObjectId ||
        list_member_oid(*search.functions, function))
        return false;
    *search.functions = lappend_oid(*search.functions, function);
    const HeapTuple tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
    if (!HeapTupleIsValid(tuple))
        return false;
    bool is_null = false;
    const Datum body = SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_prosqlbody, &is_null);
    const bool found = !is_null && read_tree(search, body);
    ReleaseSysCache(tuple);
    return found;
}

/* The one row of pg_attrdef that the keys find; also tells whose DEFAULT it is. */
bool read_default_row(const NativeFunctions& natives, Oid index, ScanKeyData* keys, int key_count,
                      Caller* caller, Call* call)
{
    const Relation defaults = table_open(AttrDefaultRelationId, AccessShareLock);
    const SysScanDesc scan = systable_beginscan(defaults, index, true, nullptr, key_count, keys);
    bool found = false;
    const HeapTuple tuple = systable_getnext(scan);
    if (HeapTupleIsValid(tuple)) {
        const auto* form = reinterpret_cast<Form_pg_attrdef>(GETSTRUCT(tuple));
        *caller = {RelationRelationId, form->adrelid, form->adnum};
        bool is_null = false;
        const Datum tree =
            heap_getattr(tuple, Anum_pg_attrdef_adbin, RelationGetDescr(defaults), &is_null);
        List* functions = NIL;
        found = !is_null && read_tree({&natives, call, 0, &functions}, tree);
    }
    systable_endscan(scan);
    table_close(defaults, AccessShareLock);
    return found;
}

bool read_default_of_column(const NativeFunctions& natives, const Caller& column, Call* call)
{
    ScanKeyData keys[2];
    ScanKeyInit(&keys[0], Anum_pg_attrdef_adrelid, BTEqualStrategyNumber, F_OIDEQ,
                ObjectIdGetDatum(column.object));
    ScanKeyInit(&keys[1], Anum_pg_attrdef_adnum, BTEqualStrategyNumber, F_INT2EQ,
                Int16GetDatum(column.column));
    Caller found;
    return read_default_row(natives, AttrDefaultIndexId, keys, 2, &found, call);
}

} // namespace

bool read_default(const NativeFunctions& natives, Oid oid, Caller* caller, Call* call)
{
    const ScratchMemory scratch;
    ScanKeyData key;
    ScanKeyInit(&key, Anum_pg_attrdef_oid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(oid));
    return read_default_row(natives, AttrDefaultOidIndexId, &key, 1, caller, call);
}

bool read_call(const NativeFunctions& natives, const Caller& caller, Call* call)
{
    const ScratchMemory scratch;
    if (caller.catalog == RelationRelationId)
        return read_default_of_column(natives, caller, call);
    if (caller.catalog == ProcedureRelationId) {
        List* functions = NIL;
        return read_function({&natives, call, 0, &functions}, caller.object);
    }
    return false;
}

} // namespace snowflake::catalog
