/* snowflake-shard list: the shards of servers, with their sizes. */

#include "catalog.h"
#include "output.h"
#include "verbs.h"

namespace
{

using Rows = std::vector<std::vector<Cell>>;

/* Rows are the estimate of the last ANALYZE, and unknown before the first. */
Result read_sizes(Connection& connection)
{
    const std::string extension = extension_schema(connection);
    return connection.query(
        "WITH shards AS (SELECT DISTINCT shard, schema_name FROM " + extension +
        ".snowflake_shards), last AS (SELECT shard, max(last_id_at) AS at FROM " + extension +
        ".snowflake_sequences GROUP BY shard)" + R"(, sizes AS (
            SELECT relnamespace, count(*) FILTER (WHERE relkind IN ('r', 'p') AND NOT relispartition) AS tables,
                   sum(reltuples) FILTER (WHERE relkind = 'r' AND reltuples >= 0)::bigint AS rows,
                   sum(pg_total_relation_size(oid))::bigint AS size
            FROM pg_class WHERE relkind IN ('r', 'p', 'm')
            GROUP BY relnamespace)
        SELECT s.shard, s.schema_name, coalesce(z.tables, 0), z.rows, coalesce(z.size, 0),
               pg_size_pretty(coalesce(z.size, 0)), to_char(l.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
        FROM shards AS s
        JOIN pg_namespace AS n ON n.nspname = s.schema_name
        LEFT JOIN sizes AS z ON z.relnamespace = n.oid
        LEFT JOIN last AS l ON l.shard = s.shard
        ORDER BY s.shard, s.schema_name)");
}

Rows list_server(Connection& connection)
{
    const std::set<std::string> closed = closed_schemas(connection);
    const Result sizes = read_sizes(connection);
    Rows rows;
    for (int i = 0; i < sizes.rows(); i++)
        if (closed.count(sizes.text(i, 1)) == 0)
            rows.push_back({sizes.number(i, 0), sizes.text(i, 1), sizes.number(i, 2),
                            sizes.is_null(i, 3) ? Cell() : sizes.number(i, 3),
                            Size{sizes.number(i, 4), sizes.text(i, 5)},
                            sizes.is_null(i, 6) ? Cell() : sizes.text(i, 6), connection.server()});
    return rows;
}

} // namespace

int list_shards(const Options& options)
{
    Table table = {{"shard", "schema", "tables", "rows", "size", "last_id_at", "server"}, {}};
    const auto list = [](Connection& connection, std::size_t) { return list_server(connection); };
    for (const Rows& rows : on_all_servers(options.dsns, list))
        table.rows.insert(table.rows.end(), rows.begin(), rows.end());
    print(table, options.json ? Format::json : Format::table);
    return kDone;
}
