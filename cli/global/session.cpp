#include "global/session.h"

#include <algorithm>

#include "base/output.h"
#include "global/tables.h"
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

} // namespace

GlobalSession::GlobalSession(const GlobalOptions& options, bool may_lack_writer)
    : writer_(connect_writer(options, may_lack_writer)),
      servers_({options.on.begin() + 1, options.on.end()}, Access::writes, false)
{
    std::vector<Connection*> all;
    if (writer_)
        all.push_back(&writer_->connection);
    for (std::size_t i = 0; i < servers_.size(); i++)
        if (!writer_ || !is_same_server(writer(), servers_[i].connection))
            followers_.push_back(&servers_[i].connection);
    if (followers_.empty())
        throw UsageError("no follower is given\nHINT:  --on takes the server where the tables are "
                         "written, and then one or more other servers.");
    all.insert(all.end(), followers_.begin(), followers_.end());
    for (Connection* const connection : all) {
        require_installed(*connection);
        withstand_settings(*connection);
        lock_by_name(*connection, kGlobal, "changing global tables");
    }
}

std::vector<std::string> table_names(Connection& connection, const GlobalOptions& options)
{
    std::vector<std::string> names;
    for (const std::string& given : options.tables)
        if (const std::string name = table_name(connection, given);
            std::find(names.begin(), names.end(), name) == names.end())
            names.push_back(name);
    return names;
}
