#include "owner_plan.h"
#include "errors.h"
#include "owner.h"

using namespace snowflake;

namespace
{

struct Expected {
    Oid table; /* invalid: nothing is expected */
    Oid owner;
};

struct Seen {
    Expected expected;
    bool has_table;
};

Expected expected = {};
planner_hook_type previous_hook = nullptr;
bool is_installed = false;

void require_owner(Oid table, const Seen& seen)
{
    const Oid owner = owner::of_table(table);
    if (owner != seen.expected.owner)
        ereport(ERROR,
                (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
                 errmsg("table %s belongs to role %s, and the query works with the rights of "
                        "role %s",
                        errors::name_of(table), quote_identifier(GetUserNameFromId(owner, false)),
                        quote_identifier(GetUserNameFromId(seen.expected.owner, false)))));
}

/* The planner reads the children of a table, too (expand_inherited_rtentry()). Catalogues and their
 * views, which initdb makes, have code of PostgreSQL alone. */
void look_at_table(const RangeTblEntry* entry, Seen& seen)
{
    if (entry->relid < FirstNormalObjectId)
        return;
    seen.has_table = seen.has_table || entry->relid == seen.expected.table;
    require_owner(entry->relid, seen);
    if (!entry->inh)
        return;
    ListCell* cell = nullptr;
    foreach (cell, find_all_inheritors(entry->relid, AccessShareLock, nullptr))
        require_owner(lfirst_oid(cell), seen);
}

/* query_tree_walker() visits range tables only where it is asked to, so they are visited here. */
bool look_at(Node* node, void* state)
{
    if (node == nullptr)
        return false;
    if (!IsA(node, Query))
        return pg::walk_children(node, look_at, state);
    auto* query = reinterpret_cast<Query*>(node);
    ListCell* cell = nullptr;
    foreach (cell, query->rtable) {
        const auto* entry = static_cast<const RangeTblEntry*>(lfirst(cell));
        if (entry->rtekind == RTE_RELATION)
            look_at_table(entry, *static_cast<Seen*>(state));
    }
    return pg::walk_query(query, look_at, state);
}

/* One query: those that functions of the owner plan meanwhile are the owner's own. */
void look_at_first(Query* query)
{
    if (!OidIsValid(expected.table))
        return;
    Seen seen = {expected, false};
    expected = {};
    look_at(reinterpret_cast<Node*>(query), &seen);
    if (!seen.has_table)
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE),
                        errmsg("the query does not read table %s: its name has changed",
                               errors::name_of(seen.expected.table))));
}

/* 19 has given the hook one more argument. */
template <typename... Others>
PlannedStmt* plan(Query* query, Others... others)
{
    look_at_first(query);
    return previous_hook != nullptr ? previous_hook(query, others...)
                                    : standard_planner(query, others...);
}

/* Installs the hook in the first session that needs it, and for its rest: no preloaded library is
 * needed. */
void install()
{
    if (is_installed)
        return;
    previous_hook = planner_hook;
    planner_hook = plan;
    is_installed = true;
}

} // namespace

void owner_plan::expect(Oid table, Oid owner, void (*work)(void*), void* argument)
{
    install();
    expected = {table, owner};
    PG_TRY();
    {
        work(argument);
    }
    PG_FINALLY();
    {
        expected = {};
    }
    PG_END_TRY();
}
