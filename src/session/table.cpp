#include "table.h"
#include "errors.h"

using namespace snowflake;
using namespace snowflake::session;

namespace
{

struct Seen {
    table::OfOwner of;
    bool has_table;
};

void look_at_relation(Oid relation, Seen& seen)
{
    if (relation < FirstNormalObjectId)
        return;
    if (const Oid owner = errors::owner_of_table(relation); owner != seen.of.role)
        ereport(ERROR,
                (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
                 errmsg("table %s belongs to role %s, and the query works with the rights of "
                        "role %s",
                        errors::name_of(relation), errors::name_of_role(owner),
                        errors::name_of_role(seen.of.role))));
    seen.has_table = seen.has_table || relation == seen.of.table;
}

bool look_at(Node* node, void* state)
{
    if (node == nullptr)
        return false;
    if (!IsA(node, Query))
        return pg::walk_children(node, look_at, state);
    auto* query = reinterpret_cast<Query*>(node);
    ListCell* cell = nullptr;
    foreach (cell, query->rtable)
        if (const auto* entry = lfirst_node(RangeTblEntry, cell); entry->rtekind == RTE_RELATION)
            look_at_relation(entry->relid, *static_cast<Seen*>(state));
    return pg::walk_query(query, look_at, state);
}

void require_role(table::OfOwner of)
{
    if (errors::owner_of_table(of.table) != of.role)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("table %s was given to another role meanwhile",
                               errors::name_of(of.table))));
}

} // namespace

void table::lock(OfOwner of, LOCKMODE mode, bool waits)
{
    require_role(of);
    if (waits)
        LockRelationOid(of.table, mode);
    else if (!ConditionalLockRelationOid(of.table, mode))
        ereport(ERROR, (errcode(ERRCODE_LOCK_NOT_AVAILABLE),
                        errmsg("could not obtain lock on table %s: another session waits for it",
                               errors::name_of(of.table))));
    require_role(of);
}

void table::require_names(Query* query, OfOwner of)
{
    Seen seen = {of, false};
    look_at(reinterpret_cast<Node*>(query), &seen);
    if (!seen.has_table)
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE),
                        errmsg("the query does not read table %s: its name has changed",
                               errors::name_of(of.table))));
}
