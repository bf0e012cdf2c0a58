/* snowflake-shard plan: the moves that balance the servers, or empty one. */

#include "plan/plan.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "base/output.h"
#include "base/shards.h"
#include "plan/verb.h"
#include "plan/weights.h"
#include "postgres/identity.h"

namespace
{

/* A Failure if a shard is at two places: it is not known which one to move. Shards are ordered by
 * number, so the two are neighbours. */
void require_one_place_each(const Distribution& distribution)
{
    for (std::size_t i = 1; i < distribution.shards.size(); i++) {
        const PlacedShard& one = distribution.shards[i - 1];
        const PlacedShard& two = distribution.shards[i];
        if (one.number == two.number)
            throw Failure("shard " + std::to_string(one.number) + " is at two places: schema " +
                          visible(one.schema) + " at " + distribution.servers[one.server].name +
                          ", schema " + visible(two.schema) + " at " +
                          distribution.servers[two.server].name +
                          "\nHINT:  snowflake-shard verify shows the facts to decide by.");
    }
}

ShardSet numbers_of(const Distribution& distribution)
{
    ShardSet numbers;
    for (const PlacedShard& shard : distribution.shards)
        numbers.insert(shard.number);
    return numbers;
}

void warn_of(const std::string& problem, const ShardSet& shards)
{
    if (!shards.empty())
        warn(problem + ": " + format_shards(shards));
}

/* The numbers that are not among the others. */
ShardSet missing(const ShardSet& numbers, const ShardSet& others)
{
    ShardSet missing;
    std::set_difference(numbers.begin(), numbers.end(), others.begin(), others.end(),
                        std::inserter(missing, missing.end()));
    return missing;
}

Sample sample_of(const PlanOptions& options)
{
    constexpr double kMinute = 60;
    return {options.by, options.over > 0 ? options.over : kMinute};
}

/* The weights by shard. A shard that the file does not name weighs nothing. */
std::map<int, double> weigh(const Distribution& distribution, const PlanOptions& options)
{
    std::map<int, double> weights;
    /* Both are warnings: a file of weights is as old as the last measurement, and shards may have
     * been made or dropped since. */
    if (!options.weights.empty()) {
        weights = read_weights(options.weights);
        ShardSet named;
        for (const auto& [shard, weight] : weights)
            named.insert(shard);
        const ShardSet placed = numbers_of(distribution);
        warn_of(options.weights + " names shards that are on none of the servers",
                missing(named, placed));
        warn_of(options.weights + " has no weight for shards, which count as empty",
                missing(placed, named));
        return weights;
    }
    const bool is_load = sample_of(options).is_wanted();
    for (const PlacedShard& shard : distribution.shards)
        weights[shard.number] = options.by == "shards" ? 1
                                : options.by == "rows" ? static_cast<double>(shard.rows)
                                : is_load              ? static_cast<double>(shard.load)
                                                       : static_cast<double>(shard.size);
    return weights;
}

/* The servers, with the mark of those that --drain names. They are compared by the identity of the
 * database and not by the text, so that --drain may name it by another address. A server that is
 * not among the others is an error: its shards are not in the plan, and it would not be emptied. */
std::vector<PlannedServer> servers_of(ServerSet& servers, const Distribution& distribution,
                                      const std::vector<std::string>& drained)
{
    std::vector<PlannedServer> planned;
    for (const PlacedServer& server : distribution.servers)
        planned.push_back({server.name, false});
    for (const std::string& dsn : drained) {
        Server server = connect_to(dsn, Access::reads);
        std::size_t at = 0;
        while (at < servers.size() && !is_same_server(servers[at].connection, server.connection))
            at++;
        if (at == servers.size())
            throw UsageError("--drain " + server.name() + " is none of the servers");
        planned[at].is_drained = true;
    }
    if (std::all_of(planned.begin(), planned.end(),
                    [](const PlannedServer& server) { return server.is_drained; }))
        throw UsageError("--drain leaves no server that could take the shards");
    return planned;
}

std::vector<PlannedShard> shards_of(const Distribution& distribution, const PlanOptions& options)
{
    /* Shards that stay count in the load of their server nevertheless: they take its space. */
    ShardSet staying = options.exclude.empty() ? ShardSet() : parse_shards(options.exclude);
    warn_of("--exclude names shards that are on none of the servers",
            missing(staying, numbers_of(distribution)));
    warn_of("left out, because they are moving", distribution.moving);
    /* Another server has old rows of the shard. A move to that one would meet them. */
    warn_of("left out until --complete", distribution.kept);
    staying.insert(distribution.moving.begin(), distribution.moving.end());
    staying.insert(distribution.kept.begin(), distribution.kept.end());
    std::map<int, double> weights = weigh(distribution, options);
    std::vector<PlannedShard> shards;
    for (const PlacedShard& shard : distribution.shards)
        shards.push_back({shard.number, shard.schema, shard.server, weights[shard.number],
                          staying.count(shard.number) == 0});
    return shards;
}

Plan make_plan(ServerSet& servers, const PlanOptions& options)
{
    Plan plan;
    plan.distribution = read_distribution(servers, sample_of(options));
    require_one_place_each(plan.distribution);
    plan.servers = servers_of(servers, plan.distribution, options.drain);
    plan.shards = shards_of(plan.distribution, options);
    plan.limits = {options.threshold, options.max_moves, !sample_of(options).is_wanted()};
    plan.moves = plan_moves(plan.servers, plan.shards, plan.limits);
    return plan;
}

/* No move helps: a server with such a shard alone is above the mean. */
void warn_of_large(const Plan& plan)
{
    double total = 0;
    for (const PlannedShard& shard : plan.shards)
        total += shard.weight;
    const auto kept = std::count_if(plan.servers.begin(), plan.servers.end(),
                                    [](const PlannedServer& one) { return !one.is_drained; });
    const double share = total / static_cast<double>(kept) * (1 + plan.limits.threshold);
    ShardSet large;
    for (const PlannedShard& shard : plan.shards)
        if (shard.weight > share && plan.servers.size() > 1)
            large.insert(shard.number);
    warn_of("more than the share of a server, each by itself", large);
}

void check_options(const PlanOptions& options)
{
    if (options.over > 0 && !sample_of(options).is_wanted())
        throw UsageError("--over is for --by writes and --by pages");
}

/* The shards that --drain leaves on their server. A warning, because the server cannot be switched
 * off yet, and the table shows only how many there are. */
void warn_of_rest(const Plan& plan)
{
    std::vector<ShardSet> left(plan.servers.size());
    for (const PlannedShard& shard : plan.shards)
        left[shard.server].insert(shard.number);
    for (const PlannedMove& move : plan.moves)
        left[move.from].erase(plan.shards[move.shard].number);
    for (std::size_t i = 0; i < plan.servers.size(); i++)
        if (plan.servers[i].is_drained)
            warn_of("excluded, moving or beyond --max-moves, so left on " + plan.servers[i].name,
                    left[i]);
}

/* Global tables are no shards: no move takes them away. The verb global makes the objects of these
 * names. */
void warn_of_global_tables(ServerSet& servers, const Plan& plan)
{
    for (std::size_t i = 0; i < plan.servers.size(); i++) {
        if (!plan.servers[i].is_drained)
            continue;
        const Result found = servers[i].connection.query(R"(
            SELECT EXISTS (SELECT FROM pg_publication WHERE pubname = 'snowflake_global'),
                   EXISTS (SELECT FROM pg_subscription JOIN pg_database AS d ON d.oid = subdbid
                           WHERE starts_with(subname, 'snowflake_global_') AND datname = current_database()))");
        if (found.flag(0, 0))
            warn(plan.servers[i].name +
                 " writes the global tables\nHINT:  Before it is switched off, "
                 "give them another writer: docs/command/global.md.");
        else if (found.flag(0, 1))
            warn(plan.servers[i].name +
                 " follows global tables\nHINT:  When it has no shard: snowflake-shard global "
                 "remove --on with the server where they are written, and this one. Its slot there "
                 "would keep WAL for ever.");
    }
}

} // namespace

int plan_shards(const PlanOptions& options)
{
    check_options(options);
    ServerSet servers(options.dsns, Access::reads, options.keep_going);
    const Plan plan = make_plan(servers, options);
    warn_of_large(plan);
    warn_of_rest(plan);
    warn_of_global_tables(servers, plan);
    if (options.json || options.format == "json")
        print_json(plan);
    else
        print_text(plan, options);
    /* The code is 0 even if the servers cannot be balanced: the plan is the best that was found,
     * and the last line of the text says so. */
    return servers.exit_code(kDone);
}
