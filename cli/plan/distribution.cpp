#include "plan/distribution.h"

#include <algorithm>
#include <tuple>

#include "base/output.h"
#include "fleet/catalog.h"
#include "fleet/in_transit.h"
#include "fleet/locked.h"
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
 * as 0. pg_total_relation_size() takes ACCESS SHARE, so a shard with a relation in ACCESS EXCLUSIVE
 * mode has no size, and only tables of shards are asked. */
std::vector<PlacedShard> read_sizes(Connection& connection)
{
    const auto [rows, locked] = query_unlocked(
        connection, "WITH shards AS (" + open_shards_sql(connection) + R"(), sizes AS (
            SELECT nspname,
                   sum(CASE WHEN n.oid <> ALL ($1::oid[]) THEN pg_total_relation_size(pg_class.oid) END)::bigint AS size,
                   sum(reltuples) FILTER (WHERE relkind = 'r' AND reltuples >= 0)::bigint AS rows
            FROM pg_class JOIN pg_namespace AS n ON n.oid = relnamespace
            WHERE relkind IN ('r', 'm') AND nspname IN (SELECT schema_name FROM shards) GROUP BY nspname)
        SELECT shard, schema_name, coalesce(size, 0), coalesce(rows, 0), schema
        FROM shards LEFT JOIN sizes ON nspname = schema_name)");
    std::vector<PlacedShard> shards;
    for (int i = 0; i < rows.rows(); i++) {
        const auto found = locked.find(rows.text(i, 4));
        shards.push_back({static_cast<int>(rows.number(i, 0)), rows.text(i, 1), 0,
                          rows.number(i, 2), rows.number(i, 3), 0, found != locked.end()});
        if (found != locked.end())
            warn(connection.server() + ": " +
                 Shard{shards.back().number, shards.back().schema}.title() +
                 ": its size counts as 0, because it is " + found->second);
    }
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
            if (shard.is_locked)
                distribution.locked.insert(shard.number);
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
