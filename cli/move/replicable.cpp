#include "move/obstacles.h"

#include "base/output.h"
#include "base/quoting.h"
#include "sql/sql.h"

Obstacles find_not_replicable(Connection& source, const Shards& shards)
{
    Obstacles found;
    found.read(source, not_replicable_sql, {schemas_of(shards)});
    found.read(source, without_equality_sql, {schemas_of(shards)});
    found.read(source, hashed_enums_sql, {schemas_of(shards)});
    return found;
}

/* The primary key is used, and from 16 on any btree index that begins with a column and is not
 * partial (FindUsableIndexForReplicaIdentityFull()). */
void tell_of_full_identity(Connection& source, const Connection& target, const Shards& shards)
{
    const Result tables =
        source.query(R"(
        SELECT string_agg(format('%s (%s)', oid::regclass, pg_size_pretty(pg_table_size(oid))), ', ' ORDER BY oid),
               (array_agg(snowflake_internal.told_to(relowner,
                   format('ALTER TABLE %s ADD PRIMARY KEY (...), REPLICA IDENTITY DEFAULT;', oid::regclass)) ORDER BY oid))[1]
        FROM pg_class AS c WHERE relnamespace = ANY ($1::regnamespace[]) AND relkind = 'r' AND relreplident = 'f'
        AND NOT EXISTS (SELECT FROM pg_index JOIN pg_class AS i ON i.oid = indexrelid JOIN pg_am AS a ON a.oid = i.relam
                        WHERE indrelid = c.oid AND indisvalid
                        AND (indisprimary OR $2::boolean AND amname = 'btree' AND indpred IS NULL AND indkey[0] <> 0)))",
                     {schemas_of(shards), target.version() >= 160000 ? "true" : "false"});
    if (!tables.text(0, 0).empty())
        warn(target.server() +
             " will read the whole table for each row of an UPDATE or DELETE, because its REPLICA "
             "IDENTITY is FULL and no index can be used: " +
             visible(tables.text(0, 0)) + ". A key is better: " + visible(tables.text(0, 1)));
}

/* A column of type oid may hold any number. So this is a warning and no obstacle, and only on a
 * server that has large objects. */
void tell_of_large_objects(Connection& source, const Shards& shards)
{
    const Result columns = source.query(R"(
        SELECT string_agg(format('%s.%I', c.oid::regclass, attname), ', ')
        FROM pg_class AS c JOIN pg_attribute ON attrelid = c.oid AND attnum > 0 AND NOT attisdropped
        WHERE relnamespace = ANY ($1::regnamespace[]) AND relkind = 'r' AND atttypid = 'oid'::regtype
        AND EXISTS (SELECT FROM pg_largeobject_metadata))",
                                        {schemas_of(shards)});
    if (!columns.text(0, 0).empty())
        warn("the source has large objects, which are not replicated. Do these columns point to "
             "them? " +
             visible(columns.text(0, 0)));
}

/* REFRESH is not replicated, and the rows of the views are not. To refresh them here would lock
 * their readers out for as long as it takes. */
void tell_of_old_views(Connection& opened, const Shards& shards)
{
    const Result views = opened.query(R"(
        SELECT string_agg(format('REFRESH MATERIALIZED VIEW %s;', oid::regclass), ' ' ORDER BY oid)
        FROM pg_class WHERE relnamespace = ANY ($1::regnamespace[]) AND relkind = 'm' AND relispopulated)",
                                      {schemas_of(shards)});
    if (!views.text(0, 0).empty())
        warn(opened.server() +
             ": materialized views have the rows of before the move. Refresh them there: " +
             visible(views.text(0, 0)));
}
