/* snowflake-shard query: the rows of a query in every shard. */

#include <algorithm>
#include <optional>

#include "base/output.h"
#include "fleet/in_transit.h"
#include "fleet/placement.h"
#include "fleet/superusers.h"
#include "verbs/gathered_rows.h"
#include "verbs/printed_rows.h"
#include "verbs/shard_query.h"

namespace
{

/* The moves are read before the open shards. In the other order a move that ends in between would
 * leave its shard in neither: not open in the first query, and without a record in the second. Then
 * the rows of the shard would be missing without a word. */
AskedServer prepare(Server& server, const QueryOptions& options)
{
    AskedServer work;
    work.server = server.name();
    for (const InTransit& one : read_in_transit(server.connection))
        if (one.motion() != Motion::rest)
            work.moving.insert(one.shard.number);
    const std::vector<Shard> all = read_shards(server.connection);
    const std::map<int, std::string> twice = find_twice(server.connection, all);
    std::map<std::string, Source> sources;
    if (!options.since.empty())
        sources = read_sources(server.connection);
    const Shards chosen =
        options.shards.empty() ? all : choose_shards(all, parse_shards(options.shards));
    tell_reader_of_superusers_shards(server.connection, chosen);
    for (const Shard& shard : chosen) {
        Asked asked = {shard, "", sources[shard.oid]};
        /* Both schemas are left out: a role that plants one of them refuses service for a number
         * at most. */
        if (const auto found = twice.find(shard.number); found != twice.end())
            asked.problem = found->second;
        work.shards.push_back(asked);
    }
    const ShardSet wanted = options.shards.empty() ? ShardSet() : parse_shards(options.shards);
    for (const Shard& shard : find_unreadable(server.connection))
        if (wanted.empty() || wanted.count(shard.number) > 0)
            work.shards.push_back(
                {shard, "the name of its schema, or of the owner, is not UTF-8", {}});
    std::stable_sort(
        work.shards.begin(), work.shards.end(),
        [](const Asked& one, const Asked& two) { return one.shard.number < two.shard.number; });
    /* Opened before the first query, so that too many connections are an error of the server, and
     * not of some shards. */
    for (std::size_t i = 1; i < std::min(work.shards.size(), std::size_t(options.jobs)); i++)
        work.more.emplace_back(server.dsn());
    *work.alive += work.more.size();
    const auto first = std::find_if(work.shards.begin(), work.shards.end(),
                                    [](const Asked& asked) { return asked.problem.empty(); });
    if (first != work.shards.end())
        require_workers(server.connection, work.more, first->shard);
    return work;
}

/* By shard, and so in ascending order for each server, too: RowOrder relies on that. Returns how
 * many there are. A shard on two servers would be counted twice, so that is an error before any row
 * is printed. */
std::size_t put_in_order(std::vector<AskedServer>& work)
{
    struct Place {
        Asked* asked;
        const AskedServer* work;
    };
    std::vector<Place> places;
    for (AskedServer& of_server : work)
        for (Asked& asked : of_server.shards)
            places.push_back({&asked, &of_server});
    std::stable_sort(places.begin(), places.end(), [](const Place& one, const Place& two) {
        return one.asked->shard.number < two.asked->shard.number;
    });
    for (std::size_t i = 0; i < places.size(); i++) {
        places[i].asked->place = i;
        if (i == 0 || places[i].work == places[i - 1].work)
            continue;
        const Shard& shard = places[i].asked->shard;
        if (shard.number == places[i - 1].asked->shard.number)
            throw Failure("shard " + std::to_string(shard.number) + " is open on " +
                          places[i - 1].work->server + " and on " + places[i].work->server +
                          "\nHINT:  snowflake-shard verify tells more. If it is moving just now, "
                          "run the query again.");
    }
    return places.size();
}

/* During the cutover of a move or a split a shard is open on neither side for a moment. Returns
 * such shards, which are not asked. They make the exit code 3: a sum over the rows would be too
 * small. query does not wait for them, because a cutover that was interrupted does not end by
 * itself. */
ShardSet warn_of_moving(const std::vector<AskedServer>& work, const ShardSet& wanted)
{
    ShardSet moving;
    for (const AskedServer& of_server : work)
        for (const int number : of_server.moving)
            if (wanted.empty() || wanted.count(number) > 0)
                moving.insert(number);
    for (const AskedServer& of_server : work)
        for (const Asked& asked : of_server.shards)
            moving.erase(asked.shard.number);
    if (!moving.empty())
        warn("moving, and open on none of the servers just now: " + format_shards(moving));
    return moving;
}

/* A number that is moving is somewhere. One that no server knows is an error before the first
 * query. */
void require_known(ServerSet& servers, const std::vector<AskedServer>& work, ShardSet missing,
                   const ShardSet& moving)
{
    for (const int number : moving)
        missing.erase(number);
    for (const AskedServer& of_server : work)
        for (const Asked& asked : of_server.shards)
            missing.erase(asked.shard.number);
    require_none(servers, missing);
}

void check_options(const QueryOptions& options)
{
    if (!options.since.empty() && (options.sql.find("$1") == std::string::npos ||
                                   options.sql.find("$2") == std::string::npos))
        throw UsageError("--since: the SQL has no $1 and $2\nHINT:  ... WHERE id > $1 AND id <= $2 "
                         "ORDER BY id");
}

std::unique_ptr<RowSink> sink_of(const QueryOptions& options, ServerSet& servers,
                                 std::size_t shards, bool has_heading)
{
    if (options.then.empty())
        return std::make_unique<PrintedRows>(shards, format_of(options.format, options.json),
                                             has_heading);
    return std::make_unique<GatheredRows>(options.at.empty() ? servers[0].dsn() : options.at,
                                          options);
}

/* An answer over some of the shards would be a wrong one. */
void require_all(const QueryOptions& options, bool is_all)
{
    if (!options.then.empty() && !is_all)
        throw Failure("--then was not run, because not all shards have answered");
}

} // namespace

int query_shards(const QueryOptions& options)
{
    const ShardSet wanted = options.shards.empty() ? ShardSet() : parse_shards(options.shards);
    check_options(options);
    ServerSet servers(options.dsns, Access::reads, true);
    std::vector<AskedServer> work =
        servers.on_each([&](std::size_t i) { return prepare(servers[i], options); });
    const std::size_t shards = put_in_order(work);
    const ShardSet moving = warn_of_moving(work, wanted);
    require_known(servers, work, wanted, moving);
    const bool is_all = moving.empty() && !servers.has_failures();
    require_all(options, is_all);
    std::optional<Since> since;
    if (!options.since.empty())
        since.emplace(options.since, options.settle_timeout);
    const auto sink = sink_of(options, servers, shards, !since || since->is_first());
    ShardQuery query(options, since ? &*since : nullptr, *sink);
    if (since)
        since->begin_output();
    query.run(servers, work);
    sink->finish(query.errors().empty());
    if (since)
        since->save();
    for (const auto& [error, of_error] : query.errors())
        warn((of_error.size() == 1 ? "shard " : "shards ") + format_shards(of_error) + ": " +
             error);
    require_all(options, query.errors().empty());
    return servers.exit_code(query.errors().empty() && is_all ? kDone : kFailed);
}
