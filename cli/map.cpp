/* snowflake-shard map: which shard is where, for people, PgBouncer and PL/Proxy. */

#include <algorithm>
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
};

std::string dsn_of(const Place& place)
{
    return dsn_setting("host", place.host) + " " + dsn_setting("port", place.port) + " " +
           dsn_setting("dbname", place.database);
}

std::vector<Place> find_places(const std::vector<std::string>& dsns)
{
    const auto servers = on_all_servers(dsns, [](Connection& connection, std::size_t) {
        std::vector<Place> places;
        for (const Shard& shard : read_shards(connection))
            places.push_back({shard, connection.host(), connection.port(), connection.database()});
        return places;
    });
    std::vector<Place> places;
    for (const auto& server : servers)
        places.insert(places.end(), server.begin(), server.end());
    std::stable_sort(places.begin(), places.end(), [](const Place& a, const Place& b) {
        return a.shard.number < b.shard.number;
    });
    return places;
}

/* A router needs one place for each shard. */
std::map<int, Place> one_place_each(const std::vector<Place>& places)
{
    std::map<int, Place> map;
    for (const Place& place : places) {
        const auto [present, is_new] = map.emplace(place.shard.number, place);
        if (!is_new)
            throw Failure("shard " + std::to_string(place.shard.number) + " is twice: schema " +
                          present->second.shard.schema + " at " + dsn_of(present->second) +
                          ", schema " + place.shard.schema + " at " + dsn_of(place));
    }
    if (map.empty())
        throw Failure("there are no shards");
    return map;
}

void print_table(const std::vector<Place>& places, Format format)
{
    Table table = {{"shard", "schema", "host", "port", "dbname"}, {}};
    for (const Place& place : places)
        table.rows.push_back({std::int64_t{place.shard.number}, place.shard.schema, place.host,
                              place.port, place.database});
    print(table, format);
}

void print_pgbouncer(const std::map<int, Place>& map, const std::string& alias)
{
    const std::size_t at = alias.find("{}");
    if (at == std::string::npos)
        throw UsageError("--alias needs {} in the place of the shard's number: shard{}");
    std::cout << "[databases]\n";
    for (const auto& [number, place] : map)
        std::cout << alias.substr(0, at) << number << alias.substr(at + 2) << " = " << dsn_of(place)
                  << "\n";
}

std::string sql_literal(const std::string& text)
{
    std::string quoted = "'";
    for (const char c : text)
        quoted.append(c == '\'' ? 2 : 1, c);
    return quoted + "'";
}

/* Partition n is shard n, so that RUN ON snowflake_shard(id) finds it. PL/Proxy opens one
 * connection for all partitions with the same string, and RUN ON ALL calls once per connection:
 * once per server. */
void print_plproxy(const std::map<int, Place>& map, const std::string& cluster)
{
    const int last = map.rbegin()->first;
    std::cout << "-- For the proxy's database, which has the extension plproxy. Run it again after "
                 "a move.\n"
                 "-- Partition n is shard n: CLUSTER "
              << sql_literal(cluster) << "; RUN ON snowflake_shard(id);\n"
              << "-- RUN ON ALL runs once on each server.\n";
    std::string options = "        ('modular_mapping', '1')";
    for (int shard = 0; shard <= last; shard++) {
        const auto found = map.find(shard);
        if (found == map.end())
            std::cout << "-- There is no shard " << shard
                      << "; PL/Proxy wants every number, so it has the place of another.\n";
        const Place& place = found == map.end() ? map.begin()->second : found->second;
        options +=
            ",\n        ('p" + std::to_string(shard) + "', " + sql_literal(dsn_of(place)) + ")";
    }
    std::cout
        << "DO $snowflake$\nDECLARE\n    server CONSTANT text := " << sql_literal(cluster)
        << ";\n    changes text;\nBEGIN\n"
           "    IF NOT EXISTS (SELECT FROM pg_catalog.pg_foreign_server WHERE srvname = server) "
           "THEN\n"
           "        EXECUTE format('CREATE SERVER %I FOREIGN DATA WRAPPER plproxy', server);\n"
           "    END IF;\n"
           "    SELECT string_agg(CASE WHEN n.option IS NULL THEN format('DROP %I', "
           "o.option_name)\n"
           "                           ELSE format('%s %I %L', CASE WHEN o.option_name IS NULL "
           "THEN 'ADD' ELSE 'SET' END,\n"
           "                                       n.option, n.value) END, ', ') INTO changes\n"
           "    FROM (VALUES\n"
        << options
        << ") AS n (option, value)\n"
           "    FULL JOIN (SELECT (pg_options_to_table(srvoptions)).option_name FROM "
           "pg_catalog.pg_foreign_server\n"
           "               WHERE srvname = server) AS o ON o.option_name = n.option\n"
           "    WHERE n.option IS NOT NULL OR o.option_name ~ '^p[0-9]+$';\n"
           "    EXECUTE format('ALTER SERVER %I OPTIONS (%s)', server, changes);\n"
           "END $snowflake$;\n";
}

} // namespace

int map_shards(const MapOptions& options)
{
    const std::vector<Place> places = find_places(options.dsns);
    const std::string format = options.json ? "json" : options.format;
    if (format == "pgbouncer")
        print_pgbouncer(one_place_each(places), options.alias);
    else if (format == "plproxy")
        print_plproxy(one_place_each(places), options.cluster);
    else
        print_table(places, format == "json"  ? Format::json
                            : format == "csv" ? Format::csv
                                              : Format::table);
    return kDone;
}
