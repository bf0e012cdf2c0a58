#include "verbs/standbys.h"

#include "postgres/identity.h"

namespace
{

struct Known {
    Address address;
    Identity identity;
};

Known know(Connection& connection)
{
    return {connection.address(), identify(connection)};
}

/* After a split two servers have the system identifier of one. Which of them a standby follows is
 * not in its own catalogs, and a wrong answer would lead readers to another server's rows. */
const Address& primary_of(const Known& standby, const std::vector<Known>& servers)
{
    const std::string name = visible(standby.address.text());
    if (!standby.identity.is_standby)
        throw Failure(name + " is no standby: it is not in recovery\nHINT:  Give it as a server, "
                             "without --replicas.");
    const Known* primary = nullptr;
    for (const Known& server : servers) {
        if (server.identity.is_standby || server.identity.database != standby.identity.database)
            continue;
        if (primary != nullptr)
            throw Failure(name + " can be a standby of " + visible(primary->address.text()) +
                          " or of " + visible(server.address.text()) +
                          ": both began as copies of one server\nHINT:  Make the lines of each of "
                          "them by a command of its own, with its own standbys.");
        primary = &server;
    }
    if (primary == nullptr)
        throw Failure(name + " is a standby of none of the servers: it has another system "
                             "identifier, or another database\nHINT:  Give its primary, too.");
    return primary->address;
}

/* A line of PgBouncer has one port for all hosts of a list. */
void add(Standbys& standbys, const Address& primary, const Address& standby)
{
    const auto [found, is_first] = standbys.emplace(primary.text(), standby);
    Address& place = found->second;
    if (is_first)
        return;
    if (place.port != standby.port)
        throw Failure("standbys of " + visible(primary.text()) + " have the ports " + place.port +
                      " and " + standby.port +
                      ": PgBouncer takes one port for a list of hosts\nHINT:  Give standbys of one "
                      "port, or write a line for the others by hand.");
    place.host += "," + standby.host;
}

} // namespace

Standbys find_standbys(ServerSet& servers, const std::vector<std::string>& dsns)
{
    Standbys standbys;
    if (dsns.empty())
        return standbys;
    const std::vector<Known> known = servers.on_all(know);
    for (const std::string& dsn : dsns) {
        const Known standby = know(connect_to(dsn, Access::reads).connection);
        add(standbys, primary_of(standby, known), standby.address);
    }
    return standbys;
}
