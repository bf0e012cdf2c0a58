/* SQL functions on shards, on the catalogue that registers them, and for snowflake_attach(). */
#include "errors.h"
#include "pg.h"
#include "registry/uses.h"
#include "rule/position.h"

using namespace snowflake;

namespace
{

[[noreturn]] void shard_count_out_of_range(std::int32_t shards)
{
    ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
                    errmsg("%d shards are out of range", shards),
                    errdetail("An ID has %d bits for its shard: 1 to %d shards, numbered from 0.",
                              kShardBits, kMaxShard + 1)));
}

[[noreturn]] void shard_in_use(std::int32_t shard, Oid catalog, Oid object, const char* schema)
{
    const ObjectAddress address = {catalog, object, 0};
    ereport(ERROR,
            (errcode(ERRCODE_DUPLICATE_OBJECT),
             errmsg("shard %d is in use by schema %s", shard, quote_identifier(schema)),
             errdetail("IDs of shard %d are made by %s; two schemas would make the same ones.",
                       shard, getObjectDescription(&address, false)),
             errhint("Take a number that SELECT shard FROM snowflake_shards does not show.")));
}

/* A row of snowflake_internal.calls(). */
void put_use(const registry::Caller& caller, const registry::Use& use, void* state)
{
    constexpr int kColumns = 11;
    auto* rows = static_cast<ReturnSetInfo*>(state);
    const registry::Call& call = use.call;
    const Oid schema = use.is_direct ? use.home : registry::schema_of(caller);
    Datum values[kColumns] = {ObjectIdGetDatum(caller.catalog), ObjectIdGetDatum(caller.object),
                              Int32GetDatum(caller.column),     ObjectIdGetDatum(schema),
                              ObjectIdGetDatum(use.through),    Int32GetDatum(call.shard),
                              ObjectIdGetDatum(call.sequence),  Int64GetDatum(raw(call.epoch)),
                              ObjectIdGetDatum(use.home),       BoolGetDatum(use.is_direct),
                              BoolGetDatum(call.is_plain)};
    bool nulls[kColumns] = {false,
                            false,
                            false,
                            !OidIsValid(schema),
                            !OidIsValid(use.through),
                            !call.has_shard,
                            !OidIsValid(call.sequence),
                            !call.has_epoch,
                            !OidIsValid(use.home),
                            false,
                            false};
    tuplestore_putvalues(rows->setResult, rows->setDesc, values, nulls);
}

enum class Keeper { transaction, session };

/* An advisory lock: these alone are kept over transactions, and are released when the session ends.
 * The SQL functions for such locks have other sub-IDs. */
void lock_until_end(Keeper keeper, std::uint32_t kind, std::uint32_t key)
{
    constexpr std::uint16_t kSubId = 3;
    LOCKTAG tag;
    SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, kind, key, kSubId);
    LockAcquire(&tag, ExclusiveLock, keeper == Keeper::session, false);
    AcceptInvalidationMessages();
}

struct Claim {
    std::int32_t shard;
    const char* schema;
    Oid schema_oid; /* InvalidOid: it does not exist yet */
};

/* By the number of the shard; null: it is not claimed. */
struct Claims {
    const Claim* of_shard[kMaxShard + 1];
};

/* One claim at a time for a number and for a name. The schema may not exist yet, so it is locked by
 * its name. */
void lock_claim(Keeper keeper, const Claim& claim)
{
    lock_until_end(keeper, 0, static_cast<std::uint32_t>(claim.shard));
    lock_until_end(keeper, 1,
                   hash_bytes(reinterpret_cast<const unsigned char*>(claim.schema),
                              static_cast<int>(strlen(claim.schema))));
}

/* Whether the call draws from a sequence of the claimed schema. One sequence repeats no ID, and any
 * role can write such a call into a schema of its own. */
bool draws_from_claimed(const registry::Call& call, const Claim& claim)
{
    return OidIsValid(claim.schema_oid) && OidIsValid(call.sequence) &&
           get_rel_namespace(call.sequence) == claim.schema_oid;
}

/* An error for an object of another schema that makes IDs of the shard. */
void check_claim(const registry::Caller& caller, const registry::Use& use, void* state)
{
    if (!use.call.has_shard || !is_valid_shard(use.call.shard) || isAnyTempNamespace(use.home))
        return;
    const Claim* claim = static_cast<const Claims*>(state)->of_shard[use.call.shard];
    if (claim == nullptr || draws_from_claimed(use.call, *claim))
        return;
    const char* name = get_namespace_name(use.home);
    if (name != nullptr && strcmp(name, claim->schema) != 0)
        shard_in_use(claim->shard, caller.catalog, caller.object, name);
}

/* In this order. All uses of the database are looked at once. */
void claim_shards(Keeper keeper, const Datum* shards, const Datum* schemas, int count)
{
    auto* claims = static_cast<Claims*>(palloc0(sizeof(Claims)));
    for (int i = 0; i < count; i++) {
        auto* claim = static_cast<Claim*>(palloc(sizeof(Claim)));
        const char* schema = NameStr(*DatumGetName(schemas[i]));
        *claim = {DatumGetInt32(shards[i]), schema, get_namespace_oid(schema, true)};
        if (!is_valid_shard(claim->shard))
            errors::shard_out_of_range(claim->shard);
        lock_claim(keeper, *claim);
        claims->of_shard[claim->shard] = claim;
    }
    registry::visit_uses(registry::native_functions(), registry::Depth::direct, check_claim,
                         claims);
}

} // namespace

extern "C" {

/* snowflake_shard_for(key bigint, shards integer) returns integer */
PG_FUNCTION_INFO_V1(snowflake_shard_for);
PGDLLEXPORT Datum snowflake_shard_for(PG_FUNCTION_ARGS)
{
    const std::int64_t key = PG_GETARG_INT64(0);
    const std::int32_t shards = PG_GETARG_INT32(1);
    if (shards < 1 || shards > kMaxShard + 1)
        shard_count_out_of_range(shards);
    const std::int64_t remainder = key % shards;
    PG_RETURN_INT32(static_cast<std::int32_t>(remainder < 0 ? remainder + shards : remainder));
}

/* snowflake_internal.stored_ms(last_value bigint, epoch_ms bigint) returns bigint */
PG_FUNCTION_INFO_V1(snowflake_stored_ms);
PGDLLEXPORT Datum snowflake_stored_ms(PG_FUNCTION_ARGS)
{
    const Stored stored = {PG_GETARG_INT64(0), true, false};
    const Start start = start_of(stored, Epoch{PG_GETARG_INT64(1)});
    PG_RETURN_INT64(raw(ms_of(start.position)));
}

/* snowflake_internal.calls() returns table: registry::Caller and registry::Use as columns */
PG_FUNCTION_INFO_V1(snowflake_calls);
PGDLLEXPORT Datum snowflake_calls(PG_FUNCTION_ARGS)
{
    pg::begin_rows(fcinfo, 0);
    registry::visit_uses(registry::native_functions(), registry::Depth::through_functions, put_use,
                         fcinfo->resultinfo);
    return Datum{0};
}

/* snowflake_internal.call_of(classid oid, objid oid, objsubid integer) returns table (the same) */
PG_FUNCTION_INFO_V1(snowflake_call_of);
PGDLLEXPORT Datum snowflake_call_of(PG_FUNCTION_ARGS)
{
    const registry::Caller caller = {PG_GETARG_OID(0), PG_GETARG_OID(1), PG_GETARG_INT32(2)};
    pg::begin_rows(fcinfo, 0);
    ListCell* cell = nullptr;
    foreach (cell, registry::uses_of(registry::native_functions(), caller))
        put_use(caller, *static_cast<const registry::Use*>(lfirst(cell)), fcinfo->resultinfo);
    return Datum{0};
}

/* snowflake_internal.claim_shard(shard integer, schema_name name) returns void */
PG_FUNCTION_INFO_V1(snowflake_claim_shard);
PGDLLEXPORT Datum snowflake_claim_shard(PG_FUNCTION_ARGS)
{
    const Datum shard = PG_GETARG_DATUM(0);
    const Datum schema = PG_GETARG_DATUM(1);
    PreventCommandIfReadOnly("snowflake_internal.claim_shard()");
    claim_shards(Keeper::transaction, &shard, &schema, 1);
    PG_RETURN_VOID();
}

/* snowflake_internal.claim_shards(shards integer[], schema_names name[]) returns void; 2202E for
 * arrays of two lengths. In a transaction block the claims last until it ends, else until the
 * session ends. */
PG_FUNCTION_INFO_V1(snowflake_claim_shards);
PGDLLEXPORT Datum snowflake_claim_shards(PG_FUNCTION_ARGS)
{
    Datum* shards = nullptr;
    Datum* schemas = nullptr;
    int count = 0;
    int schema_count = 0;
    PreventCommandIfReadOnly("snowflake_internal.claim_shards()");
    deconstruct_array(PG_GETARG_ARRAYTYPE_P(0), INT4OID, sizeof(std::int32_t), true, TYPALIGN_INT,
                      &shards, nullptr, &count);
    deconstruct_array(PG_GETARG_ARRAYTYPE_P(1), NAMEOID, NAMEDATALEN, false, TYPALIGN_CHAR,
                      &schemas, nullptr, &schema_count);
    if (count != schema_count)
        ereport(ERROR, (errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
                        errmsg("each shard needs one schema name")));
    claim_shards(IsTransactionBlock() ? Keeper::transaction : Keeper::session, shards, schemas,
                 count);
    PG_RETURN_VOID();
}

/*
 * snowflake_internal.attach_sequence_name(schema regnamespace, tbl name, col name) returns name: as
 * for a serial column, so that a tool that guesses the name guesses right.
 */
PG_FUNCTION_INFO_V1(snowflake_attach_sequence_name);
PGDLLEXPORT Datum snowflake_attach_sequence_name(PG_FUNCTION_ARGS)
{
    const char* chosen = ChooseRelationName(
        NameStr(*PG_GETARG_NAME(1)), NameStr(*PG_GETARG_NAME(2)), "seq", PG_GETARG_OID(0), false);
    return DirectFunctionCall1(namein, CStringGetDatum(chosen));
}
}
