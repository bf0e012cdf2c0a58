#include "registry/stored_call.h"

namespace snowflake::registry
{
namespace
{

/*
 * Braces and parentheses around a node of a stored tree. Real expressions have fewer than a
 * hundred. The limit is far from the end of the stack: without it, a role could store an expression
 * that ends everybody's reading with an error.
 */
constexpr int kMaxDepth = 1000;
constexpr std::size_t kMinDeepLength = 2000; /* each of them is opened and closed */

struct Search {
    const NativeFunctions* natives;
    MemoryContext results; /* the tree itself goes when it has been read */
    List* calls;
};

/* Casts between integers keep the value, or are an error. Any other function may compute another
 * value. */
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

/* False where the node is no constant, or no integer. */
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

/* The arguments by their positions in the function's signature. The parser leaves named arguments
 * in the order of the call; only the planner sorts them. */
struct Arguments {
    static constexpr int kCount = 3;
    const Node* at[kCount];
};

Arguments arguments_of(const FuncExpr* expression)
{
    Arguments arguments = {};
    int position = 0;
    ListCell* cell = nullptr;
    foreach (cell, expression->args) {
        const auto* node = static_cast<const Node*>(lfirst(cell));
        int number = position++;
        if (IsA(node, NamedArgExpr)) {
            const auto* named = reinterpret_cast<const NamedArgExpr*>(node);
            number = named->argnumber;
            node = reinterpret_cast<const Node*>(named->arg);
        }
        if (number >= 0 && number < Arguments::kCount)
            arguments.at[number] = node;
    }
    return arguments;
}

void read_arguments(const NativeFunctions& natives, const FuncExpr* expression, Call* call)
{
    if (expression->funcid == natives.next_id_default) {
        call->sequence = natives.default_sequence; /* the shard is a setting: not known here */
        call->has_epoch = true;
        return;
    }
    const Arguments arguments = arguments_of(expression);
    std::int64_t number = 0;
    call->has_shard = read_integer(arguments.at[0], &number);
    call->shard = call->has_shard ? static_cast<std::int32_t>(number) : 0;
    /* add_call() has set the epoch of the signature without one. */
    call->sequence = read_sequence(arguments.at[1]);
    call->has_epoch = true;
    if (expression->funcid == natives.next_id_epoch) {
        call->has_epoch = read_integer(arguments.at[2], &number);
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

Call* add_call(Search* search)
{
    const MemoryContext previous = MemoryContextSwitchTo(search->results);
    auto* call = static_cast<Call*>(palloc(sizeof(Call)));
    *call = {false, 0, InvalidOid, false, kInstagramEpoch, false};
    search->calls = lappend(search->calls, call);
    MemoryContextSwitchTo(previous);
    return call;
}

/* Never ends early: each call in the expression counts. */
bool find_calls(Node* node, void* state)
{
    if (node == nullptr)
        return false;
    if (IsA(node, Query))
        return pg::walk_query(reinterpret_cast<Query*>(node), find_calls, state);
    if (IsA(node, FuncExpr)) {
        auto* search = static_cast<Search*>(state);
        const auto* expression = reinterpret_cast<const FuncExpr*>(node);
        if (is_native(*search->natives, expression))
            read_arguments(*search->natives, expression, add_call(search));
    }
    return pg::walk_children(node, find_calls, state);
}

/* A backslash stands before such a character in a name or string in the text of a tree. */
bool is_too_deep(const char* text)
{
    if (strlen(text) < kMinDeepLength)
        return false;
    int depth = 0;
    for (const char* c = text; *c != '\0'; ++c) {
        if (*c == '\\' && c[1] != '\0')
            ++c;
        else if (*c == '{' || *c == '(')
            ++depth;
        else if (*c == '}' || *c == ')')
            --depth;
        if (depth > kMaxDepth)
            return true;
    }
    return false;
}

/* A tree that is too deep to be read counts as a call, so that its object is not taken for one that
 * makes no IDs. */
void read_tree(Search* search, const char* text)
{
    if (is_too_deep(text)) {
        add_call(search);
        return;
    }
    auto* tree = static_cast<Node*>(stringToNode(text));
    find_calls(tree, search);
    /* With two calls neither is the whole expression. */
    if (list_length(search->calls) == 1)
        static_cast<Call*>(linitial(search->calls))->is_plain =
            is_plain_call(*search->natives, tree);
}

} // namespace

/* The callers read thousands of expressions in one call of an SQL function, and a tree takes far
 * more memory than the calls in it: each tree is freed at once. */
List* read_calls(const NativeFunctions& natives, Datum expression)
{
    CHECK_FOR_INTERRUPTS();
    Search search = {&natives, CurrentMemoryContext, NIL};
    const MemoryContext scratch = AllocSetContextCreate(
        CurrentMemoryContext, "snowflake stored expression", ALLOCSET_DEFAULT_SIZES);
    MemoryContextSwitchTo(scratch);
    read_tree(&search, TextDatumGetCString(expression));
    MemoryContextSwitchTo(search.results);
    MemoryContextDelete(scratch);
    return search.calls;
}

} // namespace snowflake::registry
