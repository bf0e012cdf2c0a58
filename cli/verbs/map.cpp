/* snowflake-shard map: which shard is where, for people, PgBouncer and PL/Proxy. */

#include <algorithm>
#include <iostream>
#include <tuple>

#include "base/output.h"
#include "base/table.h"
#include "fleet/catalog.h"
#include "postgres/citus.h"
#include "postgres/extension.h"
#include "postgres/identity.h"
#include "postgres/servers.h"
#include "sql/sql.h"
#include "verbs/verbs.h"

namespace
{

/* By the text() of the primary's address. For several standbys the host is a list, host1,host2,
 * from which PgBouncer takes one after the other for new connections: 1.17 and later. */
using Standbys = std::map<std::string, Address>;

struct Known {
    Address address;
    Identity identity;
};

Known know(Connection& connection)
{
    return {connection.address(), identify(connection)};
}

/* After a split two servers have the system identifier of one. Which of them a standby follows is
 * not in its own catalogs, and a wrong answer would lead readers to another server's rows. */
const Address& primary_of(const Known& standby, const std::vector<Known>& servers)
{
    const std::string name = visible(standby.address.text());
    if (!standby.identity.is_standby)
        throw Failure(name + " is no standby: it is not in recovery\nHINT:  Give it as a server, "
                             "without --replicas.");
    const Known* primary = nullptr;
    for (const Known& server : servers) {
        if (server.identity.is_standby || server.identity.database != standby.identity.database)
            continue;
        if (primary != nullptr)
            throw Failure(name + " can be a standby of " + visible(primary->address.text()) +
                          " or of " + visible(server.address.text()) +
                          ": both began as copies of one server\nHINT:  Make the lines of each of "
                          "them by a command of its own, with its own standbys.");
        primary = &server;
    }
    if (primary == nullptr)
        throw Failure(name + " is a standby of none of the servers: it has another system "
                             "identifier, or another database\nHINT:  Give its primary, too.");
    return primary->address;
}

/* A line of PgBouncer has one port for all hosts of a list. */
void add(Standbys& standbys, const Address& primary, const Address& standby)
{
    const auto [found, is_first] = standbys.emplace(primary.text(), standby);
    Address& place = found->second;
    if (is_first)
        return;
    if (place.port != standby.port)
        throw Failure("standbys of " + visible(primary.text()) + " have the ports " + place.port +
                      " and " + standby.port +
                      ": PgBouncer takes one port for a list of hosts\nHINT:  Give standbys of one "
                      "port, or write a line for the others by hand.");
    place.host += "," + standby.host;
}

/* A Failure if a server is in no recovery, has none of the servers as its primary, or could have
 * two, and if a list would need several ports. */
Standbys find_standbys(ServerSet& servers, const std::vector<std::string>& dsns)
{
    Standbys standbys;
    if (dsns.empty())
        return standbys;
    const std::vector<Known> known = servers.on_all(know);
    for (const std::string& dsn : dsns) {
        const Known standby = know(connect_to(dsn, Access::reads).connection);
        add(standbys, primary_of(standby, known), standby.address);
    }
    return standbys;
}

struct MappedShard {
    int number;
    std::string schema;
    Address place;
    std::string identifier; /* the schema as SQL has it */
};

using Map = std::vector<MappedShard>;

/* A number that two schemas of one server have is an error in every format, because a router or a
 * program would lead clients to both. */
Map read_map(ServerSet& servers)
{
    const auto read = [](Connection& connection) {
        warn_of_citus(connection);
        const std::vector<Shard> shards = read_shards(connection);
        Map map;
        for (const Shard& shard : shards)
            map.push_back({shard.number, shard.schema, connection.address(),
                           connection.identifier(shard.schema)});
        return std::make_pair(map, find_twice(connection, shards));
    };
    Map map;
    std::string problems;
    for (const auto& [some, twice] : servers.on_all(read)) {
        map.insert(map.end(), some.begin(), some.end());
        for (const auto& one : twice)
            problems += (problems.empty() ? "" : "\n") + one.second;
    }
    if (!problems.empty())
        throw Failure(problems);
    /* By number, so that the same shards on other servers give files that can be compared. Two
     * places of one shard become neighbours. */
    std::sort(map.begin(), map.end(), [](const MappedShard& one, const MappedShard& two) {
        return std::make_tuple(one.number, one.schema, one.place.text()) <
               std::make_tuple(two.number, two.schema, two.place.text());
    });
    return map;
}

/* A router needs one place for each shard: with two servers, some clients would write to a copy. */
void require_one_place_each(const Map& map)
{
    for (std::size_t i = 1; i < map.size(); i++) {
        const MappedShard& one = map[i - 1];
        const MappedShard& two = map[i];
        if (one.number == two.number)
            throw Failure("shard " + std::to_string(one.number) + " is at two places: schema " +
                          visible(one.schema + " at " + one.place.dsn()) + ", schema " +
                          visible(two.schema + " at " + two.place.dsn()));
    }
}

void print_rows(const Map& map, Format format)
{
    Table table = {{"shard", "schema", "host", "port", "dbname"}, {}};
    for (const auto& [number, schema, place, identifier] : map)
        table.rows.push_back({number, schema, place.host, place.port, place.database});
    print(table, format);
}

/* The extension's schema stands after the shard's, so that its functions need no schema.
 * A shard can move to any of the servers, and its line keeps the setting, so the answer
 * is for all of them. Where others can create objects, a function of theirs could be called in
 * place of the one that is meant. */
std::string further_search_path(ServerSet& servers)
{
    const std::vector<std::string> schemas = servers.on_all(closed_extension_schema);
    for (const std::string& schema : schemas)
        if (schema.empty() || schema != schemas[0]) {
            warn("search_path has only the shard's schema, because the extension's is not on every "
                 "server one of the same name in which only its owner can create objects");
            return "";
        }
    return ", " + schemas[0];
}

std::string pooler_line(const std::string& alias, const Address& place, const std::string& settings)
{
    return pooler_key(alias) + " = host=" + pooler_value(place.host) +
           " port=" + pooler_value(place.port) + " dbname=" + pooler_value(place.database) +
           settings + "\n";
}

/* PgBouncer runs connect_query once in each new connection to a server. It keeps the connections of
 * each alias apart, so no client of another alias gets one with this search_path. With session
 * pooling PgBouncer would run DISCARD ALL between two clients, which resets it. */
void print_pgbouncer(const Map& map, const MapOptions& options, ServerSet& servers)
{
    const std::string user = options.user.empty() ? "" : " user=" + pooler_value(options.user);
    const std::string more = options.search_path ? further_search_path(servers) : "";
    const Standbys standbys = find_standbys(servers, options.replicas);
    std::string text = "[databases]\n";
    for (const auto& [number, schema, place, identifier] : map) {
        const std::string alias = schema_name(options.alias, number);
        std::string settings = user;
        if (options.search_path)
            settings += " pool_mode=transaction connect_query=" +
                        pooler_value("SET search_path = " + identifier + more);
        text += pooler_line(alias, place, settings);
        if (const auto found = standbys.find(place.text()); found != standbys.end())
            text += pooler_line(alias + "_ro", found->second, settings);
    }
    /* At once, because a name that the file cannot hold is an error. */
    std::cout << text;
}

/* Partition n is shard n. A number without a shard gets the place of the first, because PL/Proxy
 * wants every number; a call for it fails there. Without modular_mapping the number of partitions
 * has to be a power of two. With it the partition is the number modulo their count, which is the
 * number itself. */
void print_plproxy(const Map& map, const std::string& cluster)
{
    std::string partitions = "        ('modular_mapping', '1')";
    int next = 0;
    for (const MappedShard& shard : map)
        for (; next <= shard.number; next++)
            partitions += ",\n        ('p" + std::to_string(next) + "', '" +
                          doubled((next == shard.number ? shard : map[0]).place.dsn()) + "')" +
                          (next == shard.number ? "" : " /* there is no such shard */");
    const std::string name = doubled(cluster);
    std::string tag = "$snowflake$";
    for (int i = 2; (name + partitions).find(tag) != std::string::npos; i++)
        tag = "$snowflake" + std::to_string(i) + "$";
    /* From the end to the beginning, so that no mark is looked for in a value. */
    std::string sql = plproxy_sql;
    const std::vector<std::pair<std::string, std::string>> values = {
        {"@end@", tag}, {"@partitions@", partitions}, {"@cluster@", name}, {"@begin@", tag}};
    for (const auto& [mark, value] : values)
        sql.replace(sql.find(mark), mark.size(), value);
    std::cout << "-- For the proxy's database, which has the extension plproxy; to be run again "
                 "after a move.\n"
                 "-- Partition n is shard n: RUN ON snowflake_shard(id). RUN ON ALL runs once on "
                 "each server.\n"
              << sql;
}

} // namespace

int map_shards(const MapOptions& options)
{
    const std::string format = options.json ? "json" : options.format;
    if (format != "pgbouncer" && (options.search_path || !options.replicas.empty()))
        throw UsageError(std::string(options.search_path ? "--search-path" : "--replicas") +
                         " needs --format pgbouncer");
    ServerSet servers(options.dsns, Access::reads, options.keep_going);
    const Map map = read_map(servers);
    /* Such a file would take all aliases away. */
    if (map.empty() && (format == "pgbouncer" || format == "plproxy"))
        throw Failure("there are no shards");
    if (format != "table") /* people see both places; a router reads one of them */
        require_one_place_each(map);
    if (format == "pgbouncer")
        print_pgbouncer(map, options, servers);
    else if (format == "plproxy")
        print_plproxy(map, options.cluster);
    else
        print_rows(map, format_of(format, false));
    return servers.exit_code(kDone);
}
