/*
 * The catalogue as the registry of shards. A caller of a native function depends on it in
 * pg_depend, and the call's arguments stand in its stored expression. So renames, drops, dumps and
 * restores keep the registry true by themselves.
 *
 * An object also makes the calls of each function that it depends on. For that pg_depend is enough:
 * only the expressions that name a native function are read, each once. So the time grows with the
 * number of expressions and dependencies of all roles.
 *
 * Catalogues are read with a snapshot of the moment, not the transaction's: a shard that another
 * session has just committed must count, in REPEATABLE READ too.
 */
#pragma once

#include "registry/stored_call.h"

namespace snowflake::registry
{

/* A column (catalog pg_class, column > 0), a function (pg_proc) or a domain (pg_type). */
struct Caller {
    Oid catalog;
    Oid object;
    std::int32_t column;
};

/* A call that an object makes. */
struct Use {
    Call call;
    bool is_direct; /* the call stands in the object's own expression */
    Oid through;    /* else the function that the object or its domain names; InvalidOid: none */
    Oid home;       /* schema of the object whose expression holds the call */
};

/* An object that inherits more than this is wrong anyway; its functions still tell all of theirs.
 */
constexpr int kMaxInherited = 16;

/* InvalidOid: it does not exist. */
Oid schema_of(const Caller& caller);

/* Called for each use of each object of the database. */
using Visitor = void (*)(const Caller& caller, const Use& use, void* state);

/* A claim of a number asks for direct uses only: an inherited call has the same schema as the
 * direct one that it comes from. */
enum class Depth { direct, through_functions };
void visit_uses(const NativeFunctions& natives, Depth depth, Visitor visitor, void* state);

/* The uses of one object, as a List of Use*; NIL where it makes no IDs or does not exist. */
List* uses_of(const NativeFunctions& natives, const Caller& caller);

} // namespace snowflake::registry
