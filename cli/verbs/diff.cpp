/* snowflake-shard diff: shards whose definition is not the template's. */

#include <algorithm>
#include <iostream>
#include <numeric>
#include <sstream>

#include "base/output.h"
#include "base/table.h"
#include "definition/definition.h"
#include "fleet/children.h"
#include "fleet/placement.h"
#include "verbs/counted_keys.h"
#include "verbs/verbs.h"

namespace
{

void print_differences(const Shard& shard, const std::vector<Difference>& differences)
{
    std::cout << "shard " << shard.number << ", schema " << visible(shard.schema) << ":\n";
    for (const Difference& difference : differences) {
        std::istringstream lines(difference.sql);
        for (std::string line; std::getline(lines, line);)
            if (!line.empty()) /* between pg_dump's statements */
                std::cout << (difference.is_missing ? "- " : "+ ") << visible(line, "\t") << "\n";
    }
}

/* The template is not compared with itself. --shards may name it, so its number is chosen like any
 * other, and taken out here. */
ShardsOfServers choose_others(ServerSet& servers, const ShardsOfServers& all, const Template& home,
                              const std::string& numbers)
{
    ShardsOfServers shards = choose_shards(servers, all, numbers);
    auto& here = shards[home.server];
    here.erase(
        std::remove_if(here.begin(), here.end(),
                       [&](const Shard& shard) { return shard.schema == home.shard.schema; }),
        here.end());
    return shards;
}

std::size_t count_shards(const ShardsOfServers& shards)
{
    return std::accumulate(shards.begin(), shards.end(), std::size_t{0},
                           [](std::size_t sum, const auto& some) { return sum + some.size(); });
}

struct DifferentShards {
    std::string server;
    Differences found;
    std::size_t count;
    std::vector<OutsideChildren> incomplete;
};

Shards with_template(const Template& home, std::size_t server, Shards shards)
{
    if (server == home.server)
        shards.push_back(home.shard);
    return shards;
}

std::vector<DifferentShards> find_all_different(ServerSet& servers, const Template& home,
                                                const ShardsOfServers& shards,
                                                const ShardsOfServers& all)
{
    /* Without a copy, unlike clone: diff writes nothing, and can read a standby. So the server
     * cannot be asked how it writes an expression after a restore, and both texts are brought into
     * that form. The template is dumped once, and the threads of all servers only read it. */
    const Definition definition(servers[home.server].connection, home.shard);
    Progress progress("compare", count_shards(shards));
    return servers.on_each([&](std::size_t i) -> DifferentShards {
        Connection& connection = servers[i].connection;
        return {connection.address().text(),
                definition.find_different(connection, shards[i], progress), shards[i].size(),
                find_outside_children(connection, with_template(home, i, shards[i]), all[i])};
    });
}

/* Such a table is in no dump, so nothing of it is compared. */
bool warn_all(const std::vector<OutsideChildren>& incomplete)
{
    for (const OutsideChildren& one : incomplete)
        warn(one.shard.title() + ": " + one.problem + ", nor is it compared\nHINT:  " + one.hint);
    return !incomplete.empty();
}

/* How many shards could not be read. */
std::size_t tell(const std::map<std::string, ShardSet>& errors)
{
    std::size_t count = 0;
    for (const auto& [error, shards] : errors) {
        count += shards.size();
        warn((shards.size() == 1 ? "shard " : "shards ") + format_shards(shards) + ": " + error);
    }
    return count;
}

void add(Table& table, const std::string& server, const DifferentShard& different)
{
    const auto& [shard, differences] = different;
    for (const auto& [is_missing, object, sql] : differences)
        table.rows.push_back(
            {shard.number, shard.schema, server, is_missing ? "missing" : "added", object, sql});
}

} // namespace

int diff_shards(const DiffOptions& options)
{
    ServerSet servers(options.dsns, Access::reads, options.keep_going);
    const ShardsOfServers all = read_shards(servers);
    const Template home = find_template(servers, all, options.template_schema);
    warn_of(find_counted_keys(servers[home.server].connection, {home.shard}));
    const ShardsOfServers shards = choose_others(servers, all, home, options.shards);
    Table table = {{"shard", "schema", "server", "change", "object", "statement"}, {}};
    ShardSet numbers;
    /* Without those of a server that is lost meanwhile, or that could not be read. */
    std::size_t compared = 0;
    bool is_all = true;
    bool is_incomplete = false;
    for (const auto& [server, found, count, incomplete] :
         find_all_different(servers, home, shards, all)) {
        compared += count;
        const std::size_t failed = tell(found.errors);
        compared -= failed;
        is_all = is_all && failed == 0;
        is_incomplete = warn_all(incomplete) || is_incomplete;
        for (const DifferentShard& different : found.shards) {
            numbers.insert(different.shard.number);
            add(table, server, different);
            if (!options.json)
                print_differences(different.shard, different.differences);
        }
    }
    if (options.json)
        print(table, Format::json);
    else
        std::cout << count_of(compared, "shard") << " compared with " << visible(home.shard.schema)
                  << ", different: " << format_shards(numbers) << "\n";
    if (!is_all)
        return servers.exit_code(kFailed);
    return servers.exit_code(numbers.empty() && !is_incomplete ? kDone : kFound);
}
