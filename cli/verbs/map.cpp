/* snowflake-shard map: which shard is where, for people, PgBouncer and PL/Proxy. */

#include <algorithm>
#include <iostream>
#include <map>

#include "base/output.h"
#include "plan/distribution.h"
#include "plan/picture.h"
#include "postgres/catalog.h"
#include "postgres/citus.h"
#include "postgres/servers.h"
#include "verbs.h"

namespace
{

/* Shard, schema, host, port and database. */
using Row = std::vector<Cell>;

/* A number that two schemas of one server have is an error in every format, because a router or a
 * program would lead clients to both. The picture shows it. */
Table read_map(ServerSet& servers)
{
    Table map = {{"shard", "schema", "host", "port", "dbname"}, {}};
    const auto read = [](Connection& connection) {
        warn_of_citus(connection);
        const std::vector<Shard> shards = read_shards(connection);
        std::vector<Row> rows;
        for (const Shard& shard : shards)
            rows.push_back({shard.number, shard.schema, connection.host(), connection.port(),
                            connection.database()});
        return std::make_pair(rows, find_twice(connection, shards));
    };
    std::string problems;
    for (const auto& [rows, twice] : servers.on_all(read)) {
        map.rows.insert(map.rows.end(), rows.begin(), rows.end());
        for (const auto& one : twice)
            problems += (problems.empty() ? "" : "\n") + one.second;
    }
    if (!problems.empty())
        throw Failure(problems);
    /* By number, so that the same shards on other servers give files that can be compared. A number
     * is a number in its cell, so 10 comes after 9. Two places of one shard become neighbours. */
    std::sort(map.rows.begin(), map.rows.end());
    return map;
}

int shard_of(const Row& row)
{
    return static_cast<int>(std::get<std::int64_t>(row[0]));
}

std::string dsn_of(const Row& row)
{
    return dsn_setting("host", text_of(row[2])) + " " + dsn_setting("port", text_of(row[3])) + " " +
           dsn_setting("dbname", text_of(row[4]));
}

/* A router needs one place for each shard: with two servers, some clients would write to a copy. A
 * file without shards would take all aliases away. The tables for people show both cases. */
void require_one_place_each(const Table& map)
{
    if (map.rows.empty())
        throw Failure("there are no shards");
    for (std::size_t i = 1; i < map.rows.size(); i++) {
        const Row& one = map.rows[i - 1];
        const Row& two = map.rows[i];
        if (one[0] == two[0])
            throw Failure("shard " + text_of(one[0]) + " is at two places: schema " +
                          visible(text_of(one[1]) + " at " + dsn_of(one)) + ", schema " +
                          visible(text_of(two[1]) + " at " + dsn_of(two)));
    }
}

void print_pgbouncer(const Table& map, const std::string& alias, const std::string& user)
{
    require_one_place_each(map);
    std::string text = "[databases]\n";
    for (const Row& row : map.rows)
        text += pooler_key(schema_name(alias, shard_of(row))) +
                " = host=" + pooler_value(text_of(row[2])) +
                " port=" + pooler_value(text_of(row[3])) +
                " dbname=" + pooler_value(text_of(row[4])) +
                (user.empty() ? "" : " user=" + pooler_value(user)) + "\n";
    /* At once, because a name that the file cannot hold is an error. */
    std::cout << text;
}

/* Partition n is shard n. A number without a shard gets the place of the first, because PL/Proxy
 * wants every number; a call for it fails there. Without modular_mapping the number of partitions
 * has to be a power of two. With it the partition is the number modulo their count, which is the
 * number itself. */
void print_plproxy(const Table& map, const std::string& cluster)
{
    require_one_place_each(map);
    std::string partitions = "        ('modular_mapping', '1')";
    int next = 0;
    for (const Row& row : map.rows)
        for (const int number = shard_of(row); next <= number; next++)
            partitions += ",\n        ('p" + std::to_string(next) + "', '" +
                          doubled(dsn_of(next == number ? row : map.rows[0])) + "')" +
                          (next == number ? "" : " /* there is no such shard */");
    const std::string name = doubled(cluster);
    std::string tag = "$snowflake$";
    for (int i = 2; (name + partitions).find(tag) != std::string::npos; i++)
        tag = "$snowflake" + std::to_string(i) + "$";
    /* The SQL is run again after each move, so it makes the difference between the options that are
     * there and the wanted ones: ADD, SET or DROP. Other options, such as connection_lifetime,
     * stay. The order is by the length of the name first, because PL/Proxy wants the partitions in
     * the order of their numbers: p2 before p10. A DO block is one transaction, so no session sees
     * a part of the change. */
    std::cout
        << R"(-- For the proxy's database, which has the extension plproxy; to be run again after a move.
-- Partition n is shard n: RUN ON snowflake_shard(id). RUN ON ALL runs once on each server.
DO )" << tag
        << R"(
DECLARE
    cluster CONSTANT name := )"
        << "'" + name + "'"
        << R"(;
    changes text;
BEGIN
    IF NOT EXISTS (SELECT FROM pg_foreign_server WHERE srvname = cluster) THEN
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
    FULL JOIN (SELECT (pg_options_to_table(srvoptions)).option_name AS option
               FROM pg_foreign_server WHERE srvname = cluster) AS o ON o.option = n.option
    WHERE n.option IS NOT NULL OR o.option ~ '^p[0-9]+$';
    EXECUTE format('ALTER SERVER %I OPTIONS (%s)', cluster, changes);
END )" << tag
        << ";\n";
}

} // namespace

int map_shards(const Options& options)
{
    ServerSet servers(options.dsns, Access::reads, options.keep_going);
    const std::string format = options.json ? "json" : options.format;
    if (format == "svg") {
        print_picture(read_distribution(servers), {});
        return servers.exit_code(kDone);
    }
    const Table map = read_map(servers);
    if (format == "pgbouncer")
        print_pgbouncer(map, options.alias, options.pooler_user);
    else if (format == "plproxy")
        print_plproxy(map, options.cluster);
    else
        print(map, format == "json" ? Format::json : format == "csv" ? Format::csv : Format::table);
    return servers.exit_code(kDone);
}
