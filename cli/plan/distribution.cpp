#include "plan/distribution.h"

#include <algorithm>
#include <tuple>

#include "fleet/catalog.h"
#include "fleet/in_transit.h"
#include "fleet/sizes.h"
#include "postgres/citus.h"
#include "postgres/dsn.h"

namespace
{

struct Report {
    PlacedServer server;
    std::vector<PlacedShard> shards;
    std::vector<InTransit> in_transit;
};

/* The sizes of open shards, in bytes. A partitioned table is not read: its partitions have the
 * rows, and its reltuples count them again. A shard without tables has no row in sizes, and counts
 * as 0. */
std::vector<PlacedShard> read_sizes(Connection& connection)
{
    const Result rows = connection.query("WITH shards AS (" + open_shards_sql(connection) +
                                         R"(), rows AS (
            SELECT relnamespace AS schema, sum(reltuples)::bigint AS rows
            FROM pg_class WHERE relkind = 'r' AND reltuples >= 0 GROUP BY relnamespace
        ), sizes AS ()" + sizes_sql("SELECT schema FROM shards") +
                                         R"()
        SELECT shard, schema_name, coalesce(size, 0), coalesce(rows, 0)
        FROM shards LEFT JOIN rows USING (schema) LEFT JOIN sizes USING (schema))");
    std::vector<PlacedShard> shards;
    for (int i = 0; i < rows.rows(); i++)
        shards.push_back({static_cast<int>(rows.number(i, 0)), rows.text(i, 1), 0,
                          rows.number(i, 2), rows.number(i, 3), 0});
    return shards;
}

/* The address is that of the server that answered, not of another one of a list of hosts: move
 * takes the plan later, when the list may lead elsewhere. The other settings of the connection
 * string are added without secrets, because the plan is a file that people edit and pass on. */
Report read_server(Connection& connection, const Sample& sample)
{
    warn_of_citus(connection);
    std::map<std::string, std::int64_t> load;
    if (sample.is_wanted())
        load = measure_load(connection, sample);
    std::vector<PlacedShard> shards = read_sizes(connection);
    for (PlacedShard& shard : shards)
        shard.load = load[shard.schema];
    return {{connection.server(), printed_dsn(connection.address(), connection.dsn())},
            std::move(shards),
            read_in_transit(connection)};
}

} // namespace

Distribution read_distribution(ServerSet& servers, const Sample& sample)
{
    Distribution distribution;
    for (const Report& report :
         servers.on_all([&](Connection& connection) { return read_server(connection, sample); })) {
        distribution.servers.push_back(report.server);
        for (PlacedShard shard : report.shards) {
            shard.server = distribution.servers.size() - 1;
            distribution.shards.push_back(shard);
        }
        /* A record on any of the servers counts: the one that has the shard open need not be the
         * one that keeps its old rows. */
        for (const InTransit& one : report.in_transit)
            (one.motion() == Motion::rest ? distribution.kept : distribution.moving)
                .insert(one.shard.number);
    }
    /* Makes two places of a number neighbours. */
    std::sort(distribution.shards.begin(), distribution.shards.end(),
              [](const PlacedShard& one, const PlacedShard& two) {
                  return std::tie(one.number, one.schema) < std::tie(two.number, two.schema);
              });
    return distribution;
}
