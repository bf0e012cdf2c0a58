#include "fleet/placement.h"

#include "base/output.h"
#include "base/suggestion.h"

ShardsOfServers read_shards(ServerSet& servers)
{
    return servers.on_all([](Connection& connection) { return read_shards(connection); });
}

std::vector<Shard> choose_shards(const std::vector<Shard>& shards, const ShardSet& numbers)
{
    std::vector<Shard> chosen;
    for (const Shard& shard : shards)
        if (numbers.count(shard.number) > 0)
            chosen.push_back(shard);
    return chosen;
}

ShardsOfServers choose_shards(ServerSet& servers, const ShardsOfServers& shards,
                              const std::string& numbers)
{
    if (numbers.empty())
        return shards;
    const ShardSet wanted = parse_shards(numbers);
    ShardSet missing = wanted;
    ShardsOfServers chosen;
    for (const auto& of_server : shards) {
        chosen.push_back(choose_shards(of_server, wanted));
        for (const Shard& shard : chosen.back())
            missing.erase(shard.number);
    }
    /* This comes after all servers, so that the error names all missing numbers at once. */
    require_none(servers, missing);
    return chosen;
}

void require_none(ServerSet& servers, const ShardSet& missing)
{
    if (missing.empty())
        return;
    const std::string message =
        count_of(missing.size(), "shard") +
        (servers.size() == 1 ? " not on " + servers[0].name() : " on none of the servers") + ": " +
        format_shards(missing);
    /* If a server has failed, the missing shards may be there: with --keep-going the others go on.
     */
    if (!servers.has_failures())
        throw Failure(message +
                      "\nHINT:  snowflake-shard list shows the shards. Nothing was done.");
    warn(message);
}

/* Two schemas of that name may differ, and nothing tells which one is meant. A server counts once,
 * also if its schema has several numbers: find_shard() refuses that below, and names them. */
Template find_template(ServerSet& servers, const ShardsOfServers& shards, const std::string& schema)
{
    std::string places;
    std::vector<std::string> schemas;
    std::size_t server = 0;
    int found = 0;
    for (std::size_t i = 0; i < servers.size(); i++)
        for (const Shard& shard : shards[i]) {
            schemas.push_back(shard.schema);
            if (shard.schema == schema && (found == 0 || server != i)) {
                places += (found++ == 0 ? "" : ", ") + servers[i].name();
                server = i;
            }
        }
    if (found > 1)
        throw Failure("schema " + visible(schema) + " is a shard of several servers: " + places +
                      "\nHINT:  Give only the server whose schema is the template.");
    /* If there is one server, find_shard() gives the same error and names the server. */
    if (found == 0 && servers.size() > 1)
        throw Failure("schema " + visible(schema) + " is a shard of none of the servers" +
                      schema_suggestion(schema, schemas) +
                      "\nHINT:  snowflake_create_shard() makes a schema a shard.");
    return {server, find_shard(shards[server], schema, servers[server].name())};
}
