#include "move/session.h"

#include <optional>

#include "fleet/catalog.h"
#include "fleet/records.h"
#include "postgres/advisory.h"
#include "postgres/extension.h"
#include "postgres/identity.h"
#include "postgres/settings.h"
#include "replication/slot.h"

namespace
{

/* A shard that is open there, or that a move there knows. A fenced shard can be missing from the
 * registry, because the fence has replaced the functions that make its IDs. */
std::optional<Shard> look_for_shard(Connection& connection, const std::string& schema)
{
    for (const MoveState& move : read_moves(connection))
        if (move.schema == schema)
            return Shard{move.shard, schema, connection.identifier(schema)};
    for (const Shard& shard : read_shards(connection))
        if (shard.schema == schema)
            return find_shard(connection, schema); /* an error if it has two numbers */
    return {};
}

/* The target has it alone when the old rows have been dropped. */
Shard find_shard_of_move(Servers& servers, const std::string& schema)
{
    if (const auto shard = look_for_shard(servers.source, schema))
        return *shard;
    if (const auto shard = look_for_shard(servers.target, schema))
        return *shard;
    return find_shard(servers.source, schema);
}

Move name_move(Servers& servers, const std::string& schema)
{
    const Shard shard = find_shard_of_move(servers, schema);
    const std::string name = name_of_move(shard.number);
    return {shard, name, name_slot(servers.source, name), name_slot(servers.target, name)};
}

} // namespace

Servers::Servers(const std::string& from, const std::string& to) : source(from), target(to)
{
    require_extension(source);
    require_build(target);
    withstand_settings(source);
    withstand_settings(target);
}

Session::Session(const std::string& from, const std::string& to, const std::string& schema)
    : servers(from, to), move(name_move(servers, schema))
{
    /* Before the locks: in one database the second would wait for the first. */
    if (is_same_server(servers.source, servers.target))
        throw UsageError("--from and --to are the same: " + servers.source.server());
    /* A command with the servers exchanged locks them in the other order. lock_timeout ends their
     * wait for each other. */
    lock_by_name(servers.source, move.name, "moving the shard");
    lock_by_name(servers.target, move.name, "moving the shard");
}

Move opposite(const Move& move)
{
    return {move.shard, move.name, move.back_slot, move.slot};
}

std::string Move::sql(std::string text) const
{
    const std::string mark = "@move@";
    for (std::size_t at = 0; (at = text.find(mark, at)) != std::string::npos;)
        text.replace(at, mark.size(), name);
    return text;
}
