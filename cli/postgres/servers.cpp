#include "postgres/servers.h"

#include <cstdlib>

#include "base/output.h"
#include "postgres/dsn.h"
#include "postgres/extension.h"
#include "postgres/identity.h"
#include "postgres/server_file.h"

namespace
{

/* place: where it was given, for an error. */
struct GivenDsn {
    std::string text;
    std::string place;
};

std::vector<GivenDsn> read_arguments(const std::vector<std::string>& arguments)
{
    std::vector<GivenDsn> dsns;
    const auto add_file = [&](const std::string& file) {
        for (const auto& [number, dsn] : read_server_file(file))
            dsns.push_back({dsn, "file " + file + ", line " + std::to_string(number)});
    };
    for (std::size_t i = 0; i < arguments.size(); i++)
        if (arguments[i][0] == '@')
            add_file(arguments[i].substr(1));
        else
            dsns.push_back({arguments[i], "DSN " + std::to_string(i + 1)});
    const char* const file = std::getenv("SNOWFLAKE_SERVERS");
    if (dsns.empty() && file != nullptr)
        add_file(file);
    if (dsns.empty())
        throw UsageError("no server is given\nHINT:  Give connection strings or @FILE, or name a "
                         "file in the environment variable SNOWFLAKE_SERVERS.");
    return dsns;
}

/* libpq writes a line for each address that it has tried, with a hint in a line of its own. */
std::string as_one_line(std::string text)
{
    for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos;)
        text.replace(at, 1, at + 1 < text.size() && text[at + 1] == '\t' ? " " : "; ");
    for (std::size_t at = 0; (at = text.find('\t', at)) != std::string::npos;)
        text.erase(at, 1);
    return text;
}

Server connect(const std::string& dsn)
{
    Server server = reach(dsn);
    require_extension(server.connection);
    return server;
}

void require_writable(Connection& connection)
{
    if (identify(connection).is_standby)
        throw Failure(connection.server() + ": it is a standby, and cannot be written to. HINT: "
                                            "Give its primary, or all hosts of both and "
                                            "target_session_attrs=primary.");
}

} // namespace

Server reach(const std::string& dsn)
{
    try {
        return Server(dsn);
    } catch (const Failure& error) {
        throw Failure(visible(without_secrets(dsn)) + ": " + as_one_line(error.what()));
    }
}

Server connect_to(const std::string& dsn, Access access)
{
    check_dsn(dsn);
    Server server = connect(dsn);
    if (access == Access::writes)
        require_writable(server.connection);
    return server;
}

ServerSet::ServerSet(const std::vector<std::string>& arguments, Access access, bool keeps_going)
    : keeps_going_(keeps_going)
{
    const std::vector<GivenDsn> dsns = read_arguments(arguments);
    /* All before the first connection: wrong usage must have no effect. */
    for (const GivenDsn& dsn : dsns)
        check_dsn(dsn.text, dsn.place);
    given_ = dsns.size();
    for (auto& [server, error] :
         attempt<Server>(given_, [&](std::size_t i) { return connect(dsns[i].text); }))
        if (server)
            servers_.push_back(std::move(*server));
        else
            failures_.push_back(error);
    /* This reports the servers that could not be reached, too, because it asks the others by
     * on_all(). */
    leave_out_duplicates();
    if (access == Access::writes)
        /* on_all() needs a result, so there is a true. */
        on_all([](Connection& connection) { return require_writable(connection), true; });
}

/* A standby has the shards of its primary: with both, each shard would be at two places. If two
 * addresses lead to one server, the first is kept, without a line. The primary is kept and its
 * standby left out, because the primary can be written to; if there are two standbys, the first is
 * kept. A standby that was promoted has another start and is not in recovery, so both stay: after a
 * split, each has shards of its own. */
void ServerSet::leave_out_duplicates()
{
    const std::vector<Identity> identities = on_all(identify);
    std::vector<std::string> names;
    for (const Server& server : servers_)
        names.push_back(server.name());
    std::vector<Server> kept;
    for (std::size_t i = 0; i < servers_.size(); i++) {
        const Identity& one = identities[i];
        bool is_left_out = false;
        for (std::size_t j = 0; j < servers_.size() && !is_left_out; j++) {
            const Identity& other = identities[j];
            if (i == j || one.database != other.database)
                continue;
            const bool is_same = one == other;
            is_left_out = is_same ? j < i : one.is_standby && (!other.is_standby || j < i);
            if (is_left_out && !is_same)
                warn(names[i] + " is a standby and is left out: " + names[j] +
                     " has the same shards");
        }
        if (!is_left_out)
            kept.push_back(std::move(servers_[i]));
    }
    servers_ = std::move(kept);
}

void ServerSet::add_failure(const std::string& server, const std::string& error)
{
    failures_.push_back((error.find(server) == std::string::npos ? server + ": " : "") + error);
}

void ServerSet::report_failures()
{
    /* The only server: its error is that of the command, without a count. */
    if (failures_.size() == 1 && given_ == 1)
        throw Failure(failures_[0]);
    for (const std::string& failure : failures_)
        warn(failure);
    /* failures_ is emptied, so that each is told once; failed_ stays for the exit code. */
    failed_ += failures_.size();
    failures_.clear();
    if (servers_.empty())
        throw Failure("none of the servers is left: nothing was done");
    if (failed_ > 0 && !keeps_going_)
        throw Failure(std::to_string(failed_) + " of " + count_of(given_, "server") +
                      " failed: nothing was done");
}
