/* snowflake-shard list: the shards of servers, with their sizes. */

#include "base/table.h"
#include "fleet/catalog.h"
#include "fleet/in_transit.h"
#include "postgres/citus.h"
#include "postgres/extension.h"
#include "postgres/servers.h"
#include "postgres/values.h"
#include "verbs/verbs.h"

namespace
{

/* Open shards, and those that are closed by a move, if their schema is there: a DROP SCHEMA by hand
 * leaves the record of the move. Shards that a split has left closed are omitted, because the other
 * server lists them. The first row of VALUES is never a schema: it gives the columns their types,
 * also if there is no move. */
std::string shards_sql(Connection& connection)
{
    std::string moves;
    for (const InTransit& one : read_in_transit(connection))
        if (one.kind == InTransit::Kind::move || one.state == InTransit::State::moving)
            moves += ", (" + std::to_string(one.shard.number) + ", " +
                     connection.literal(one.shard.schema) + ", '" + state_of(one) + "')";
    return "SELECT shard, schema_name, coalesce(m.state, 'open') AS state FROM (" +
           open_shards_sql(connection) +
           ") AS o FULL JOIN (SELECT m.* FROM (VALUES (NULL::bigint, NULL::name, NULL)" + moves +
           ") AS m (shard, schema_name, state) JOIN pg_namespace ON nspname = schema_name) AS m "
           "USING (shard, schema_name)";
}

} // namespace

int list_shards(const ServerOptions& options)
{
    /* A shard that is moving is on two servers, and one that has moved leaves its rows behind.
     *
     * Rows are the estimate of the last ANALYZE, and unknown before the first. Rows and size are of
     * this server alone, so they are left out where Citus has the rows on another node.
     *
     * A partitioned table is counted once, without its partitions. Its reltuples count their rows
     * again, so only tables with rows are added up; reltuples = -1 is a table that was never
     * analyzed. pg_total_relation_size() has indexes and TOAST, is 0 for a partitioned table, and
     * NULL for one that was dropped meanwhile. It takes ACCESS SHARE on each relation, so list
     * waits for a session with ACCESS EXCLUSIVE, and only tables of shards are asked. */
    const auto list = [&](Connection& connection) {
        warn_of_citus(connection);
        warn_of_unread_records(connection);
        return connection.query("WITH shards AS (" + shards_sql(connection) + R"(), last AS (
                SELECT shard, max(last_id_at) AT TIME ZONE 'UTC' AS at
                FROM )" + extension_schema(connection) +
                                    R"(.snowflake_sequences GROUP BY shard
            ), sizes AS (
                SELECT relnamespace AS schema,
                       count(*) FILTER (WHERE relkind IN ('r', 'p') AND NOT relispartition) AS tables,
                       sum(reltuples) FILTER (WHERE relkind = 'r' AND reltuples >= 0)::bigint AS rows,
                       sum(pg_total_relation_size(oid))::bigint AS size
                FROM pg_class WHERE relkind IN ('r', 'p', 'm')
                AND relnamespace IN (SELECT n.oid FROM pg_namespace AS n JOIN shards ON schema_name = nspname)
                GROUP BY relnamespace
            ), citus AS ()" + citus_nodes_sql(connection) +
                                    R"()
            SELECT shard, schema_name, state, coalesce(tables, 0), CASE WHEN node IS NULL THEN rows END,
                   CASE WHEN node IS NULL THEN )" +
                                    (options.json ? "coalesce(size, 0)"
                                                  : "pg_size_pretty(coalesce(size, 0))") +
                                    R"( END, to_char(at, 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
                   coalesce(node || '/' || current_database(), $1::text)
            FROM shards LEFT JOIN last USING (shard)
            LEFT JOIN pg_namespace AS n ON n.nspname = schema_name
            LEFT JOIN sizes ON sizes.schema = n.oid
            LEFT JOIN citus ON citus.schema = n.oid
            ORDER BY shard, schema_name)",
                                {connection.address().text()});
    };
    Table table = {{"shard", "schema", "state", "tables", "rows", "size", "last_id_at", "server"},
                   {}};
    /* Always goes on without a server that fails: the rows of the others are right by themselves.
     * The exit code is 3. */
    ServerSet servers(options.dsns, Access::reads, true);
    for (const Result& shards : servers.on_all(list))
        add_rows(table, shards);
    print(table, format_of("", options.json));
    return servers.exit_code(kDone);
}
