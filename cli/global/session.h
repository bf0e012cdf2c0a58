/* The servers of add, run and drop, connected and locked. */

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/table.h"
#include "global/tables.h"
#include "global/verb.h"
#include "postgres/obstacles.h"
#include "postgres/servers.h"

/* --on names the writer first. It may be among the followers, too, so that these can be a file of
 * all servers: it is left out of them. */
class GlobalSession
{
public:
    /* may_lack_writer: without an error if it cannot be reached. */
    GlobalSession(const GlobalOptions& options, bool may_lack_writer);
    /* Connects to all servers: find_writer() finds the writer. */
    explicit GlobalSession(const std::vector<std::string>& dsns);

    bool has_writer() const { return writer_ != nullptr; }
    Connection& writer() { return *writer_; }
    const std::vector<Connection*>& followers() const { return followers_; }

private:
    void lock();

    std::optional<Server> given_writer_; /* of --on */
    ServerSet servers_;
    Connection* writer_ = nullptr;
    std::vector<Connection*> followers_;
};

/* The one that has the publication. A Failure if none has it, or two, as after a split. */
std::size_t find_writer(ServerSet& servers);

/* The slots on the writer of followers that are not in the session. Such a follower would fail at a
 * change of a table, or keep one that is global no more. */
Names other_slots(GlobalSession& session);
/* Failure if there is one. all: "all servers" */
void require_all(GlobalSession& session, const std::string& all);

/* The tables of the command line, each once. Any server can read them. */
Names table_names(Connection& connection, const GlobalOptions& options);

/* The result of a command: a row for each table and server. */
const std::vector<std::string> kStateColumns = {"table", "server", "state"};

/* Schemas of the tables that lock_schemas() would not lock on the writer. */
Obstacles find_unlockable(Connection& writer, const Names& tables);

/* tables: the global ones, and those of the command line; added: the unpublished ones among them.
 * The followers are compared with the writer only if that has no obstacle. */
Obstacles find_obstacles(GlobalSession& session, const GlobalOptions& options, const Names& tables,
                         const Names& added);
