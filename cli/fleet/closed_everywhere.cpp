#include "fleet/closed_everywhere.h"

#include "base/quoting.h"
#include "fleet/catalog.h"
#include "postgres/identity.h"

const char* const kClosedEverywhere =
    "If it has moved on, give that server, too. Else see \"The target is lost for good\" in "
    "docs/move-failures.md.";

namespace
{

/* The server is asked again, because a move can have ended since: now the shard is open there.
 * Where it has moved on, that server has a closed copy, with a record of its own. A record that
 * says open, as that of reverse replication, tells nothing if no such shard is there; nor does one
 * whose schema is gone. */
bool has_or_had(Connection& server, int number)
{
    for (const Shard& shard : read_shards(server))
        if (shard.number == number)
            return true;
    for (const InTransit& one : read_in_transit(server))
        if (one.shard.number == number && one.is_source && !one.is_open)
            return server.query("SELECT FROM pg_namespace WHERE nspname = $1", {one.shard.schema})
                       .rows() > 0;
    return false;
}

} // namespace

bool ClosedEverywhere::has(const InTransit& closed)
{
    if (closed.kind != InTransit::Kind::move || closed.is_open || closed.motion() == Motion::moving)
        return false;
    const auto [place, is_new] = found_.insert({closed.other.text(), nullptr});
    if (is_new)
        place->second = find_server(closed.other);
    return place->second != nullptr && !has_or_had(*place->second, closed.shard.number);
}

/* By the address of a record; nullptr if it is of none of the servers. */
Connection* ClosedEverywhere::find_server(const Address& address)
{
    for (std::size_t i = 0; i < servers_.size(); i++)
        if (servers_[i].connection.address() == address)
            return &servers_[i].connection;
    for (std::size_t i = 0; i < servers_.size(); i++)
        if (is_address_of(address, servers_[i].connection))
            return &servers_[i].connection;
    return nullptr;
}

std::string describe_closed(const InTransit& closed)
{
    return "it is closed here since its move to " + visible(closed.other.text()) +
           ", and is not open there";
}
