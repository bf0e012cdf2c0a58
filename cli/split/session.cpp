#include "split/session.h"

#include <map>

#include "base/output.h"
#include "fleet/catalog.h"
#include "postgres/advisory.h"
#include "postgres/extension.h"
#include "postgres/identity.h"
#include "postgres/settings.h"
#include "postgres/trust.h"

namespace
{

/* The shards that leave, as the command line has them, and those that stay. A number that two
 * schemas have is refused on either side: clients and routers know a shard by its number, so a
 * schema that another role has planted could leave with the shard, or stay in its place. */
std::vector<SplitShard> choose(Connection& old, const std::string& list)
{
    if (list.empty())
        throw UsageError("split: --shards is needed: the shards that the standby takes");
    ShardSet missing = parse_shards(list);
    const ShardSet wanted = missing;
    std::map<std::string, int> numbers;
    std::vector<SplitShard> shards;
    ShardSet numbers_there;
    const std::vector<Shard> there = read_shards(old);
    for (const Shard& shard : there) {
        numbers_there.insert(shard.number);
        missing.erase(shard.number);
        /* The fence closes a schema as a whole, so its rows cannot be in a shard that leaves and in
         * one that stays. */
        if (!numbers.emplace(shard.schema, shard.number).second)
            throw Failure("schema " + visible(shard.schema) +
                          " makes IDs of several shards: " + std::to_string(numbers[shard.schema]) +
                          ", " + std::to_string(shard.number));
        shards.push_back({shard, wanted.count(shard.number) > 0});
    }
    if (!missing.empty())
        throw Failure(count_of(missing.size(), "shard") + " not on " + old.server() + ": " +
                      format_shards(missing) + "\nNothing was done.");
    require_one_schema_each(old, there, numbers_there);
    return shards;
}

} // namespace

SplitServers::SplitServers(const SplitOptions& options) : old(options.from)
{
    require_extension(old);
    withstand_settings(old);
    /* The lock comes before the record is read: it must not change between a check and the step
     * after it. */
    lock_by_name(old, kSplitSchema, "splitting the server");
    try {
        standby = std::make_unique<Connection>(options.standby);
    } catch (const UsageError&) {
        /* The command line is wrong, whether the server runs or not. */
        throw;
    } catch (const Failure& error) {
        why_unreached = error.what();
        return;
    }
    if (is_same_server(old, *standby))
        throw UsageError("--from and --standby are the same: " + old.server());
    /* The lock of the old server is not on the standby, because advisory locks are not in the
     * WAL. */
    withstand_settings(*standby);
    lock_by_name(*standby, kSplitSchema, "splitting the server");
}

Connection& SplitServers::reached() const
{
    if (standby == nullptr)
        throw Failure("the standby cannot be reached: " + why_unreached);
    return *standby;
}

SplitState require_split(Connection& connection)
{
    if (const auto state = read_split(connection))
        return *state;
    require_trusted_schema(connection, kSplitSchema);
    throw Failure("the record of the split, schema " + kSplitSchema + ", is gone from " +
                  connection.server());
}

bool is_in_recovery(Connection& connection)
{
    return connection.query("SELECT pg_is_in_recovery()").flag(0, 0);
}

std::string start_of(Connection& connection)
{
    return connection.query("SELECT extract(epoch FROM pg_postmaster_start_time())").text(0, 0);
}

std::vector<SplitShard> shards_of(const SplitOptions& options, Connection& old)
{
    if (read_split(old))
        return read_split_shards(old);
    if (options.is_resumed || options.is_aborted || options.is_completed)
        return {};
    return choose(old, options.shards);
}
