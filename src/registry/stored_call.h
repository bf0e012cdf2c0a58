/*
 * Reads the calls of native functions out of a stored expression: a column's DEFAULT, the default
 * of a domain, or the parsed body of an SQL function. Nothing is executed, and no SQL text is
 * parsed.
 */
#pragma once

#include "registry/native_functions.h"
#include "rule/layout.h"
#include "pg.h"

namespace snowflake::registry
{

/* A call of a native function, as far as its arguments are constants. */
struct Call {
    bool has_shard;
    std::int32_t shard;
    Oid sequence; /* InvalidOid: not constant */
    bool has_epoch;
    Epoch epoch;
    bool is_plain; /* the call is the whole expression, but for casts */
};

/*
 * All native calls in a pg_node_tree, as a List of Call*. An expression that is nested too deep to
 * be read safely counts as one call without constants.
 */
List* read_calls(const NativeFunctions& natives, Datum expression);

} // namespace snowflake::registry
