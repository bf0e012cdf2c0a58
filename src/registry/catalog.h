/*
 * The catalogue as the registry of shards. Whatever calls the native function depends on it in
 * pg_depend, so renames, drops, dumps and restores keep the registry true by themselves.
 *
 * Catalogues are read with a snapshot of the moment, not the transaction's: what another session
 * has just committed counts, in REPEATABLE READ too.
 */
#pragma once

#include "registry/stored_call.h"

namespace snowflake::catalog
{

/* Called for each caller of the database; false ends the search. */
using Visitor = bool (*)(const Caller& caller, const Call& call, void* state);

enum class Depth { direct, through_functions };
void visit_calls(const NativeFunctions& natives, Depth depth, Visitor visitor, void* state);

} // namespace snowflake::catalog
