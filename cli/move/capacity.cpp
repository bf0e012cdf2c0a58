#include "move/capacity.h"

#include <algorithm>

#include "base/output.h"
#include "postgres/identity.h"
#include "postgres/too_few.h"

namespace
{

/* A move takes a slot and a sender, a worker and an origin. The connection that makes the slot is
 * such a sender, too, until the rows are copied; the stream begins later. */
std::string takes(std::size_t moves, std::size_t count, std::size_t reverse,
                  const std::string& more = "")
{
    std::string text;
    if (moves == 1)
        text = "a move takes " + std::to_string(count) + more;
    else if (moves > 1)
        text =
            std::to_string(moves) + " moves at the same time take " + std::to_string(count) + more;
    if (reverse == 0)
        return text;
    text += text.empty() ? "" : ", and ";
    return text +
           (reverse == 1 ? "reverse replication takes 1"
                         : "reverse replication of " + std::to_string(reverse) + " sets takes " +
                               std::to_string(reverse)) +
           " until --complete";
}

} // namespace

Capacity::Cluster& Capacity::cluster_of(Connection& connection)
{
    const Identity identity = identify(connection);
    const std::string system = identity.database.substr(0, identity.database.find('/'));
    Cluster& cluster = clusters_[identity.start + "/" + system];
    if (cluster.dsn.empty())
        cluster.seen = connection.query("SELECT clock_timestamp()").text(0, 0);
    const std::string dsn = connection.dsn_of_server();
    cluster.dsn = cluster.dsn.empty() ? dsn : std::min(cluster.dsn, dsn);
    return cluster;
}

void Capacity::add_move(Servers& servers, int jobs)
{
    const std::lock_guard<std::mutex> lock(mutex_);
    jobs_ = std::max(jobs_, jobs);
    cluster_of(servers.source).publishing.databases.insert(identify(servers.source).database);
    cluster_of(servers.target).subscribing.databases.insert(identify(servers.target).database);
}

void Capacity::add_reverse(Servers& servers, bool has_slot)
{
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!has_slot)
        cluster_of(servers.target).publishing.reverse++;
    cluster_of(servers.source).subscribing.reverse++;
}

/* The size of a table has its indexes and TOAST; a partitioned table has no storage. */
void Capacity::add_rows(Servers& servers, const Shards& shards)
{
    const Result size = servers.source.query(R"(
        SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint
        FROM pg_class WHERE relnamespace = ANY ($1::regnamespace[]) AND relkind IN ('r', 'm'))",
                                             {schemas_of(shards)});
    const std::lock_guard<std::mutex> lock(mutex_);
    Space& space = spaces_[identify(servers.target).database];
    space.dsn = servers.target.dsn_of_server();
    space.shards += shards.size();
    space.bytes += size.number(0, 0);
}

/* SQL does not tell how much space is free. */
void Capacity::tell(const Obstacles& obstacles)
{
    warn(count_of(obstacles.size(), "obstacle"));
    for (const auto& [key, space] : spaces_) {
        Connection target(space.dsn);
        const Result sizes = target.query(R"(
            SELECT pg_size_pretty($1::bigint), pg_size_pretty(pg_tablespace_size(dattablespace)), quote_ident(spcname)
            FROM pg_database JOIN pg_tablespace AS t ON t.oid = dattablespace WHERE datname = current_database())",
                                          {std::to_string(space.bytes)});
        const bool is_one = space.shards == 1;
        warn(count_of(space.shards, "shard") + (is_one ? " has " : " have ") + sizes.text(0, 0) +
             ": " + target.server() + " needs as much free space beside the " + sizes.text(0, 1) +
             " of its tablespace " + visible(sizes.text(0, 2)) +
             (is_one ? ", and the source keeps WAL until the cutover"
                     : ", and each source keeps WAL until the cutover"));
    }
}

/* Sessions of owners, one for each connection. On the target: that of the definition, and those
 * that copy rows, and later build indexes. Then the worker of the subscription follows, and one
 * compares rows. On the source: one looks for obstacles, and one compares rows. */
Obstacles Capacity::find_too_few(int moves)
{
    const std::size_t on_target = 1 + static_cast<std::size_t>(std::max(jobs_, 2));
    constexpr std::size_t kOnSource = 2;
    Obstacles found;
    for (const auto& [key, cluster] : clusters_) {
        const Side& published = cluster.publishing;
        const Side& subscribed = cluster.subscribing;
        const auto most = static_cast<std::size_t>(moves);
        const std::size_t from = std::min(published.databases.size(), most);
        const std::size_t to = std::min(subscribed.databases.size(), most);
        const std::size_t workers = to * on_target + from * kOnSource;
        Connection connection(cluster.dsn);
        found.add(::find_too_few(
            connection, {from + published.reverse, takes(from, from, published.reverse)},
            {to + subscribed.reverse, takes(to, to, subscribed.reverse)},
            {workers + subscribed.reverse, takes(std::max(from, to), workers, subscribed.reverse,
                                                 " with the sessions of owners")},
            cluster.seen));
    }
    return found;
}
