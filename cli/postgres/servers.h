/* The servers that a command works on. A server is a database: two databases of one PostgreSQL
 * server are two here. */

#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "postgres/connection.h"
#include "postgres/parallel.h"

/* A Connection cannot be moved, but a Server can, as vectors do: the reference stays valid, because
 * it is to an object on the heap. owner is declared first, because connection is made from it. */
struct Server {
    explicit Server(const std::string& dsn)
        : owner(std::make_unique<Connection>(dsn)), connection(*owner)
    {
    }

    std::string name() const { return connection.server(); }
    /* The string for further connections to the same server, not to another one of a list of hosts.
     * It has the password. */
    std::string dsn() const { return connection.dsn_of_server(); }

    std::unique_ptr<Connection> owner;
    Connection& connection;
};

/* writes: a server in recovery is refused before anything is done. */
enum class Access { reads, writes };

/* One server, which need not have the extension. The error does not show the string's password. */
Server reach(const std::string& dsn);

/* One server, with its own error if it cannot be used: UsageError for a wrong string, else Failure.
 * The error does not show the string's password. */
Server connect_to(const std::string& dsn, Access access);

class ServerSet
{
public:
    /* Connects to all at the same time. arguments: connection strings, and @FILE for a file with
     * one in each line; if there are none, the environment variable SNOWFLAKE_SERVERS names the
     * file. A database that is given twice is one server, and so is a standby of a server that is
     * given, too. A standby alone can be read.
     *
     * A server that fails, here or in on_all(), is named on the standard error. Then nothing more
     * is done, unless keeps_going: the others remain. */
    ServerSet(const std::vector<std::string>& arguments, Access access, bool keeps_going);

    std::size_t size() const { return servers_.size(); }
    Server& operator[](std::size_t i) { return servers_[i]; }

    /* Calls function(connection) for all servers at the same time: result i is of server i. */
    template <typename Function>
    auto on_all(Function function)
    {
        return on_each([&](std::size_t i) { return function(servers_[i].connection); });
    }

    /* The same with function(i). Servers that fail are not there any more afterwards: an index is
     * valid until the next call. Only a Failure is that of a server; another exception ends the
     * command. Result i is of server i of the set that is left. */
    template <typename Function>
    auto on_each(Function function)
    {
        using Outcome = std::invoke_result_t<Function, std::size_t>;
        auto outcomes = attempt<Outcome>(servers_.size(), function);
        std::vector<Outcome> results;
        std::vector<Server> remaining;
        for (std::size_t i = 0; i < outcomes.size(); i++)
            if (outcomes[i].value) {
                results.push_back(std::move(*outcomes[i].value));
                remaining.push_back(std::move(servers_[i]));
            } else {
                add_failure(servers_[i].name(), outcomes[i].error);
            }
        servers_ = std::move(remaining);
        report_failures();
        return results;
    }

    /* Servers were left out. */
    bool has_failures() const { return failed_ > 0; }
    /* The code of a command that has worked on the others: 3 if there are failures, because its
     * result is not that of all servers. */
    int exit_code(int code) const { return has_failures() ? kFailed : code; }

private:
    template <typename Outcome>
    struct Attempt {
        std::optional<Outcome> value;
        std::string error;
    };

    template <typename Outcome, typename Function>
    static std::vector<Attempt<Outcome>> attempt(std::size_t count, Function function)
    {
        return at_once(count, [&](std::size_t i) -> Attempt<Outcome> {
            try {
                return {function(i), ""};
            } catch (const Failure& error) {
                return {{}, error.what()};
            }
        });
    }

    void add_failure(const std::string& server, const std::string& error);
    void report_failures();
    void leave_out_duplicates();

    /* Calls of on_all() and on_each() change all of these, so only one thread may make them. */
    const bool keeps_going_;
    std::vector<Server> servers_;
    std::vector<std::string> failures_; /* that are not reported yet */
    std::size_t given_ = 0;
    std::size_t failed_ = 0;
};

/* Calls function(connection, work[i]) for each connection to server i at the same time: its own,
 * and those in work[i].more. function() handles its errors itself: one that leaves it ends the
 * command, and not only the work of that server. */
template <typename Work, typename Function>
void on_all_connections(ServerSet& servers, std::vector<Work>& work, Function function)
{
    std::vector<std::pair<Connection*, Work*>> workers;
    for (std::size_t i = 0; i < servers.size(); i++) {
        workers.emplace_back(&servers[i].connection, &work[i]);
        for (Connection& connection : work[i].more)
            workers.emplace_back(&connection, &work[i]);
    }
    at_once(workers.size(), [&](std::size_t i) {
        function(*workers[i].first, *workers[i].second);
        return true;
    });
}
