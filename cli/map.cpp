/* snowflake-shard map: which shard is where, for people, PgBouncer and PL/Proxy. */

#include <iostream>
#include <map>

#include "catalog.h"
#include "output.h"
#include "verbs.h"

namespace
{

struct Place {
    Shard shard;
    std::string host;
    std::string port;
    std::string database;

    std::string dsn() const
    {
        return dsn_setting("host", host) + " " + dsn_setting("port", port) + " " +
               dsn_setting("dbname", database);
    }
};

using Map = std::multimap<int, Place>;

Map read_map(const std::vector<std::string>& dsns)
{
    std::vector<Map> servers = on_all_servers(dsns, [](Connection& connection, std::size_t) {
        Map map;
        for (const Shard& shard : read_shards(connection))
            map.insert({shard.number,
                        {shard, connection.host(), connection.port(), connection.database()}});
        return map;
    });
    Map all;
    for (Map& map : servers)
        all.merge(map);
    return all;
}

/* A router needs one place for each shard. */
void require_one_place_each(const Map& map)
{
    if (map.empty())
        throw Failure("there are no shards");
    for (auto place = map.begin(), next = std::next(place); next != map.end(); place = next++)
        if (place->first == next->first)
            throw Failure("shard " + std::to_string(place->first) + " is at two places: schema " +
                          place->second.shard.schema + " at " + place->second.dsn() + ", schema " +
                          next->second.shard.schema + " at " + next->second.dsn());
}

void print_pgbouncer(const Map& map, const std::string& alias)
{
    require_one_place_each(map);
    std::cout << "[databases]\n";
    for (const auto& [number, place] : map)
        std::cout << schema_name(alias, number) << " = " << place.dsn() << "\n";
}

std::string sql_literal(const std::string& text)
{
    std::string quoted;
    for (const char c : text)
        quoted.append(c == '\'' ? 2 : 1, c);
    return "'" + quoted + "'";
}

/* Partition n is shard n. A number without a shard gets the place of the first, because PL/Proxy
 * wants every number; a call for it fails there. */
void print_plproxy(const Map& map, const std::string& cluster)
{
    require_one_place_each(map);
    std::string partitions = "        ('modular_mapping', '1')";
    for (int shard = 0; shard <= map.rbegin()->first; shard++) {
        const auto found = map.find(shard);
        const bool is_missing = found == map.end();
        partitions += ",\n        ('p" + std::to_string(shard) + "', " +
                      sql_literal((is_missing ? map.begin() : found)->second.dsn()) + ")" +
                      (is_missing ? " /* there is no such shard */" : "");
    }
    std::cout
        << R"(-- For the proxy's database, which has the extension plproxy; to be run again after a move.
-- Partition n is shard n: RUN ON snowflake_shard(id). RUN ON ALL runs once on each server.
DO $snowflake$
DECLARE
    cluster CONSTANT name := )"
        << sql_literal(cluster) << R"(;
    changes text;
BEGIN
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_foreign_server WHERE srvname = cluster) THEN
        EXECUTE format('CREATE SERVER %I FOREIGN DATA WRAPPER plproxy OPTIONS (p0 '''')', cluster);
    END IF;
    SELECT string_agg(CASE WHEN n.option IS NULL THEN format('DROP %I', o.option)
                           WHEN o.option IS NULL THEN format('ADD %I %L', n.option, n.value)
                           ELSE format('SET %I %L', n.option, n.value) END, ', '
                      ORDER BY length(n.option), n.option) INTO changes
    FROM (VALUES
)" << partitions
        << R"(
    ) AS n (option, value)
    FULL JOIN (SELECT (pg_catalog.pg_options_to_table(srvoptions)).option_name AS option
               FROM pg_catalog.pg_foreign_server WHERE srvname = cluster) AS o ON o.option = n.option
    WHERE n.option IS NOT NULL OR o.option ~ '^p[0-9]+$';
    EXECUTE format('ALTER SERVER %I OPTIONS (%s)', cluster, changes);
END $snowflake$;
)";
}

Table table_of(const Map& map)
{
    Table table = {{"shard", "schema", "host", "port", "dbname"}, {}};
    for (const auto& [number, place] : map)
        table.rows.push_back(
            {std::int64_t{number}, place.shard.schema, place.host, place.port, place.database});
    return table;
}

} // namespace

int map_shards(const Options& options)
{
    const Map map = read_map(options.dsns);
    if (options.json || options.format == "json")
        print(table_of(map), Format::json);
    else if (options.format == "pgbouncer")
        print_pgbouncer(map, options.alias);
    else if (options.format == "plproxy")
        print_plproxy(map, options.cluster);
    else
        print(table_of(map), options.format == "csv" ? Format::csv : Format::table);
    return kDone;
}
