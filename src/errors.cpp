/* Shared error texts: see errors.h. */
#include "errors.h"

#include "rule/timestamp.h"

namespace snowflake::errors
{

const char* name_of(Oid relation)
{
    const char* name = get_rel_name(relation);
    const char* schema = get_namespace_name(get_rel_namespace(relation));
    if (name == nullptr || schema == nullptr) /* dropped meanwhile */
        return psprintf("with OID %u", relation);
    return quote_qualified_identifier(schema, name);
}

const char* name_of_role(Oid role)
{
    return quote_identifier(GetUserNameFromId(role, false));
}

void require_ordinary_table(Relation relation)
{
    if (relation->rd_rel->relkind != RELKIND_RELATION)
        ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE),
                        errmsg("%s is no ordinary table", name_of(RelationGetRelid(relation)))));
}

void require_all_rows(Oid table, Oid role)
{
    if (check_enable_rls(table, role, false) == RLS_ENABLED)
        ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
                        errmsg("a row-level security policy may hide rows of table %s from role %s",
                               name_of(table), name_of_role(role))));
}

Oid owner_of_table(Oid table)
{
    const HeapTuple tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(table));
    if (!HeapTupleIsValid(tuple))
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE),
                        errmsg("table with OID %u does not exist", table)));
    const Oid owner = reinterpret_cast<Form_pg_class>(GETSTRUCT(tuple))->relowner;
    ReleaseSysCache(tuple);
    return owner;
}

Oid owner_of_schema(Oid schema)
{
    const HeapTuple tuple = SearchSysCache1(NAMESPACEOID, ObjectIdGetDatum(schema));
    if (!HeapTupleIsValid(tuple))
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_SCHEMA),
                        errmsg("schema with OID %u does not exist", schema)));
    const Oid owner = reinterpret_cast<Form_pg_namespace>(GETSTRUCT(tuple))->nspowner;
    ReleaseSysCache(tuple);
    return owner == ROLE_PG_DATABASE_OWNER ? pg::owner_of_database() : owner;
}

void require_owner(Oid table)
{
    if (!pg::is_owner(table))
        aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_TABLE, get_rel_name(table));
}

Problem may_not_become(Oid role)
{
    if (pg::may_become(role))
        return {};
    const char* name = name_of_role(role);
    const char* caller = name_of_role(GetUserId());
    return {psprintf("role %s may not act as role %s", caller, name),
            psprintf("As a superuser: GRANT %s TO %s; it gives all rights of that role.", name,
                     caller)};
}

void require_none(const Problem& problem)
{
    if (problem.message != nullptr)
        ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE), errmsg("%s", problem.message),
                        errhint("%s", problem.hint)));
}

const char* date_of(UnixMs time)
{
    std::int64_t timestamp = 0;
    if (!to_timestamp(time, &timestamp) || !IS_VALID_TIMESTAMP(timestamp))
        return psprintf("Unix millisecond %lld", static_cast<long long>(raw(time)));
    pg_tm parts;
    fsec_t microseconds = 0;
    char text[MAXDATELEN + 1];
    if (timestamp2tm(timestamp, nullptr, &parts, &microseconds, nullptr, nullptr) != 0)
        return psprintf("Unix millisecond %lld", static_cast<long long>(raw(time)));
    EncodeDateTime(&parts, microseconds, false, 0, nullptr, USE_ISO_DATES, text);
    return psprintf("%s UTC", text);
}

void shard_out_of_range(std::int32_t shard)
{
    ereport(ERROR,
            (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE), errmsg("shard %d is out of range", shard),
             errdetail("An ID has %d bits for its shard: 0 to %d.", kShardBits, kMaxShard),
             errhint("Map a key to a shard with key %% shards, where shards is at most %d.",
                     kMaxShard + 1)));
}

void before_epoch(UnixMs time, Epoch epoch)
{
    ereport(ERROR, (errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
                    errmsg("%s is before the epoch", date_of(time)),
                    errdetail("The epoch is %s (epoch_ms %lld).", date_of(UnixMs{raw(epoch)}),
                              number(raw(epoch))),
                    errhint("Set the clock right, or give an epoch_ms in the past.")));
}

void past_last_ms(UnixMs time, Epoch epoch, UnixMs last_ms)
{
    ereport(ERROR,
            (errcode(ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED),
             errmsg("no IDs are left at %s", date_of(time)),
             errdetail("With the epoch %s (epoch_ms %lld) the last ID is of %s; one after it "
                       "would be negative.",
                       date_of(UnixMs{raw(epoch)}), number(raw(epoch)), date_of(last_ms)),
             errhint("Give a later epoch_ms.")));
}

} // namespace snowflake::errors
