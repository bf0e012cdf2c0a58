/* snowflake-shard list: the shards of servers, with their sizes. */

#include "catalog.h"
#include "output.h"
#include "verbs.h"

int list_shards(const Options& options)
{
    /* Rows are the estimate of the last ANALYZE, and unknown before the first. */
    const auto list = [&](Connection& connection) {
        return connection.query("WITH shards AS (" + open_shards_sql(connection) + R"(), last AS (
                SELECT shard, max(last_id_at) AT TIME ZONE 'UTC' AS at
                FROM )" + extension_schema(connection) +
                                    R"(.snowflake_sequences GROUP BY shard
            ), sizes AS (
                SELECT relnamespace AS schema,
                       count(*) FILTER (WHERE relkind IN ('r', 'p') AND NOT relispartition) AS tables,
                       sum(reltuples) FILTER (WHERE relkind = 'r' AND reltuples >= 0)::bigint AS rows,
                       sum(pg_total_relation_size(oid))::bigint AS size
                FROM pg_class WHERE relkind IN ('r', 'p', 'm') GROUP BY relnamespace)
            SELECT shard, schema_name, coalesce(tables, 0), rows,
                   )" + (options.json ? "coalesce(size, 0)" : "pg_size_pretty(coalesce(size, 0))") +
                                    R"(, to_char(at, 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), $1::text
            FROM shards LEFT JOIN last USING (shard)
            LEFT JOIN sizes ON schema = quote_ident(schema_name)::regnamespace
            ORDER BY shard, schema_name)",
                                {connection.server()});
    };
    Table table = {{"shard", "schema", "tables", "rows", "size", "last_id_at", "server"}, {}};
    for (const Result& shards : on_all_servers(options.dsns, list))
        table.add(shards);
    print(table, options.json ? Format::json : Format::table);
    return kDone;
}
