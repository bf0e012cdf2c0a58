#include "owner_plan.h"
#include "errors.h"
#include "owner.h"

using namespace snowflake;

namespace
{

/* What a query reads, as look_at() finds it. */
struct Seen {
    Oid owner;
    Oid foreign; /* the first table of another owner */
};

Oid guarded_owner = InvalidOid; /* invalid: outside of guard() */
int foreign_plans = 0; /* queries with tables of others that are planned, one in the other */
planner_hook_type previous_hook = nullptr;
object_access_hook_type previous_access_hook = nullptr;
bool is_installed = false;

void note_owner(Oid table, Seen& seen)
{
    if (!OidIsValid(seen.foreign) && owner::of_table(table) != seen.owner)
        seen.foreign = table;
}

/* The planner reads the children of a table, too (expand_inherited_rtentry()). Catalogues and their
 * views, which initdb makes, have code of PostgreSQL alone. */
void look_at_table(const RangeTblEntry* entry, Seen& seen)
{
    if (entry->relid < FirstNormalObjectId)
        return;
    note_owner(entry->relid, seen);
    if (!entry->inh)
        return;
    ListCell* cell = nullptr;
    foreach (cell, find_all_inheritors(entry->relid, AccessShareLock, nullptr))
        note_owner(lfirst_oid(cell), seen);
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

bool is_guarded()
{
    return OidIsValid(guarded_owner) && GetUserId() == guarded_owner;
}

bool reads_foreign_table(Query* query)
{
    Seen seen = {guarded_owner, InvalidOid};
    look_at(reinterpret_cast<Node*>(query), &seen);
    return OidIsValid(seen.foreign);
}

/* 19 has given the hook one more argument. */
template <typename... Others>
PlannedStmt* plan_by_next(Query* query, Others... others)
{
    return previous_hook != nullptr ? previous_hook(query, others...)
                                    : standard_planner(query, others...);
}

template <typename... Others>
PlannedStmt* plan(Query* query, Others... others)
{
    if (!is_guarded() || !reads_foreign_table(query))
        return plan_by_next(query, others...);
    PlannedStmt* planned = nullptr;
    foreign_plans++;
    PG_TRY();
    {
        planned = plan_by_next(query, others...);
    }
    PG_FINALLY();
    {
        foreign_plans--;
    }
    PG_END_TRY();
    return planned;
}

/* The planner calls this before it runs a function of a constant expression (evaluate_expr()). */
void check_access(ObjectAccessType access, Oid catalog, Oid object, int part, void* argument)
{
    if (previous_access_hook != nullptr)
        previous_access_hook(access, catalog, object, part, argument);
    if (access != OAT_FUNCTION_EXECUTE || foreign_plans == 0 || !is_guarded())
        return;
    const Oid owner = owner::of_function(object);
    if (owner != guarded_owner && !superuser_arg(owner))
        errors::runs_with_rights_of(object, guarded_owner);
}

/* Installs the hooks in the first session that needs them, and for its rest: no preloaded library
 * is needed. */
void install()
{
    if (is_installed)
        return;
    previous_hook = planner_hook;
    planner_hook = plan;
    previous_access_hook = object_access_hook;
    object_access_hook = check_access;
    is_installed = true;
}

} // namespace

void owner_plan::guard(Oid owner, void (*work)(void*), void* argument)
{
    install();
    const Oid owner_before = guarded_owner;
    const int plans_before = foreign_plans;
    PG_TRY();
    {
        guarded_owner = owner;
        foreign_plans = 0;
        work(argument);
    }
    PG_FINALLY();
    {
        guarded_owner = owner_before;
        foreign_plans = plans_before;
    }
    PG_END_TRY();
}
