#include "global/session.h"

#include "base/output.h"
#include "global/follower.h"
#include "global/publication.h"
#include "postgres/advisory.h"
#include "postgres/extension.h"
#include "postgres/identity.h"
#include "postgres/settings.h"

namespace
{

std::optional<Server> connect_writer(const GlobalOptions& options, bool may_lack_writer)
{
    try {
        return connect_to(options.on[0], Access::writes);
    } catch (const Failure& error) {
        if (!may_lack_writer)
            throw;
        warn(error.what());
        return {};
    }
}

[[noreturn]] void no_follower()
{
    throw UsageError("no follower is given\nHINT:  --on takes the server where the tables are "
                     "written, and then one or more other servers.");
}

/* An empty list would be read from the file of SNOWFLAKE_SERVERS. */
std::vector<std::string> followers_of(const GlobalOptions& options)
{
    if (options.on.size() < 2)
        no_follower();
    return {options.on.begin() + 1, options.on.end()};
}

} // namespace

GlobalSession::GlobalSession(const GlobalOptions& options, bool may_lack_writer)
    : given_writer_(connect_writer(options, may_lack_writer)),
      servers_(followers_of(options), Access::writes, false),
      writer_(given_writer_ ? &given_writer_->connection : nullptr)
{
    for (std::size_t i = 0; i < servers_.size(); i++)
        if (!writer_ || !is_same_server(*writer_, servers_[i].connection))
            followers_.push_back(&servers_[i].connection);
    if (followers_.empty())
        no_follower();
    lock();
}

GlobalSession::GlobalSession(const std::vector<std::string>& dsns)
    : servers_(dsns, Access::writes, false)
{
    const std::size_t at = find_writer(servers_);
    writer_ = &servers_[at].connection;
    for (std::size_t i = 0; i < servers_.size(); i++)
        if (i != at)
            followers_.push_back(&servers_[i].connection);
    lock();
}

void GlobalSession::lock()
{
    std::vector<Connection*> all = followers_;
    if (writer_)
        all.insert(all.begin(), writer_);
    for (Connection* const connection : all) {
        require_installed(*connection);
        withstand_settings(*connection);
        lock_by_name(*connection, kGlobal, "changing global tables");
    }
}

std::size_t find_writer(ServerSet& servers)
{
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < servers.size(); i++)
        if (find_publication(servers[i].connection).is_own)
            found.push_back(i);
    if (found.empty())
        throw Failure("none of the servers has publication " + kGlobal +
                      "\nHINT:  Give the server where the global tables are written, too.");
    if (found.size() > 1)
        throw Failure(servers[found[0]].name() + " and " + servers[found[1]].name() +
                      " both have publication " + kGlobal + "\nHINT:  DROP PUBLICATION " + kGlobal +
                      "; on the one where the global tables are not written.");
    return found[0];
}

Names other_slots(GlobalSession& session)
{
    Names slots = slots_of_followers(session.writer());
    for (Connection* const follower : session.followers())
        slots.erase(std::remove(slots.begin(), slots.end(), find_subscription(*follower).slot),
                    slots.end());
    return slots;
}

void require_all(GlobalSession& session, const std::string& all)
{
    if (const Names slots = other_slots(session); !slots.empty())
        throw Failure("slot " + slots[0] + " on " + session.writer().server() +
                      " is of a follower that is not given\nHINT:  Give " + all +
                      ". If that one is gone: SELECT pg_drop_replication_slot('" + slots[0] +
                      "');");
}

Names table_names(Connection& connection, const GlobalOptions& options)
{
    Names names;
    for (const std::string& given : options.tables)
        if (const std::string name = table_name(connection, given); !has(names, name))
            names.push_back(name);
    return names;
}
