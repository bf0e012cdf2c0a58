/*
 * The extension's own functions by their OIDs. They are found by the schema that pg_extension names
 * and by their exact signature. No search_path takes part, and no function that somebody else has
 * created with other arguments is taken for one of them.
 */
#pragma once

#include "pg.h"

namespace snowflake::registry
{

/* The generating functions and the sequence of the one without arguments. */
struct NativeFunctions {
    Oid next_id;         /* (shard, seq) */
    Oid next_id_epoch;   /* (shard, seq, epoch_ms) */
    Oid next_id_default; /* () */
    Oid default_sequence;
};

NativeFunctions native_functions();

/* InvalidOid: there is no such function. Needs no privilege on the schema. */
Oid function_in(Oid schema, const char* name, const Oid* arguments, int count);

} // namespace snowflake::registry
