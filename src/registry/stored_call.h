/*
 * The catalogue as the registry of shards. Whatever calls the native function, a column's DEFAULT
 * or an SQL function with a parsed body, depends on it in pg_depend, and the call's arguments stand
 * in the stored expression tree. They are read there: nothing is executed, no SQL text is parsed,
 * and renames, drops, dumps and restores keep the registry true by themselves.
 *
 * Catalogues are read with a snapshot of the moment, not the transaction's: what another session
 * has just committed counts, in REPEATABLE READ too.
 */
#pragma once

#include "registry/native_functions.h"
#include "rule/layout.h"
#include "pg.h"

namespace snowflake::catalog
{

/* A call of the native function, as far as its arguments are constants. */
struct Call {
    Oid through; /* the SQL function between the object and the native one; InvalidOid: none */
    bool has_shard;
    std::int32_t shard;
    Oid sequence; /* InvalidOid: not constant */
    bool has_epoch;
    Epoch epoch;
    bool is_plain; /* the native call is the whole expression, but for casts */
};

/* The object that calls: a column (catalog pg_class, column > 0) or a function (pg_proc). */
struct Caller {
    Oid catalog;
    Oid object;
    AttrNumber column;
};

/* False where the object calls nothing native, or does not exist. */
bool read_call(const NativeFunctions& natives, const Caller& caller, Call* call);

/* The same by the OID of the row in pg_attrdef; says whose DEFAULT it is. */
bool read_default(const NativeFunctions& natives, Oid oid, Caller* caller, Call* call);

} // namespace snowflake::catalog
