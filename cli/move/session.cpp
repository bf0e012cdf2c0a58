#include "move/session.h"

#include <algorithm>

#include "fleet/catalog.h"
#include "fleet/in_transit.h"
#include "fleet/known.h"
#include "postgres/advisory.h"
#include "postgres/extension.h"
#include "postgres/identity.h"
#include "postgres/settings.h"
#include "replication/slots.h"

namespace
{

bool is_less(const Shard& one, const Shard& other)
{
    return one.number < other.number;
}

void require_set(const Known& known, const Connection& server, const Shards& shards)
{
    for (const Shard& shard : shards) {
        const MoveState* const move = known.find_move(shard.schema);
        if (move != nullptr && numbers_of(move->shards) != numbers_of(shards))
            throw Failure(
                shard.title() + ", moves with its set: " + title_of(move->shards) + "\nHINT:  " +
                next_commands(in_transit(*move, server.address().uri(), move->other.uri())));
    }
}

/* The target has a shard alone when the old rows have been dropped. */
Move name_move(Servers& servers, const Known& source, const std::vector<std::string>& schemas)
{
    require_installed(servers.source);
    const Known target = read_known(servers.target);
    Shards shards;
    for (const std::string& schema : schemas) {
        auto found = source.find(schema);
        if (!found)
            found = target.find(schema);
        Shard shard = found ? *found : find_shard(source.open, schema, source.server);
        shard.quoted = servers.source.identifier(schema);
        shards.push_back(shard);
    }
    std::sort(shards.begin(), shards.end(), is_less);
    require_set(source, servers.source, shards);
    require_set(target, servers.target, shards);
    const std::string name = name_of_move(shards.front().number);
    return {shards, name, name_slot(servers.source, name), name_slot(servers.target, name)};
}

std::vector<std::string> locks_of(const Move& move)
{
    std::vector<std::string> names;
    for (const Shard& shard : move.shards)
        names.push_back(name_of_move(shard.number));
    return names;
}

} // namespace

Servers::Servers(const std::string& from, const std::string& to) : source(from), target(to)
{
    require_extension(source); /* that of the target is an obstacle */
    withstand_settings(source);
    withstand_settings(target);
}

Session::Session(const std::string& from, const std::string& to,
                 const std::vector<std::string>& schemas)
    : servers(from, to), known(read_known(servers.source)), move(name_move(servers, known, schemas))
{
    /* This check comes before the locks: in one database the second would wait for the first. */
    if (is_same_server(servers.source, servers.target))
        throw UsageError("--from and --to are the same: " + servers.source.server());
    /* A command with the servers exchanged locks them in the other order. lock_timeout ends their
     * wait for each other. */
    for (Connection* const server : {&servers.source, &servers.target})
        lock_by_names(*server, locks_of(move), "moving the shard");
    /* Again: until then another command can have begun a move of some of these shards. */
    known = read_known(servers.source);
    require_set(known, servers.source, move.shards);
    require_set(read_known(servers.target), servers.target, move.shards);
}

Move opposite(const Move& move)
{
    return {move.shards, move.name, move.back_slot, move.slot, move.has_ids};
}

std::string Move::quoted() const
{
    std::string names;
    for (const Shard& shard : shards)
        names += (names.empty() ? "" : ", ") + shard.quoted;
    return names;
}

std::string Move::sql(std::string text) const
{
    const std::string mark = "@move@";
    for (std::size_t at = 0; (at = text.find(mark, at)) != std::string::npos;)
        text.replace(at, mark.size(), name);
    return text;
}
