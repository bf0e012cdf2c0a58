/* How clients are led to the shards, as the command line says it. The source of a move or a split
 * keeps it, so that --resume and --abort cannot forget it. */

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/shards.h"
#include "postgres/connection.h"
#include "routers/pooler_file.h"

/* The options of a cutover, for both move and split. */
struct CutoverOptions {
    std::vector<std::string> pgbouncer; /* consoles, and the file of each */
    std::vector<std::string> config;
    std::vector<std::string> config_command; /* none, or of each */
    std::string switch_command;
    std::string alias = "shard{}";
    double max_lag = 1; /* seconds */
    double timeout = 10;
    bool trusts_readers = false;
};

struct Pooler {
    std::string console; /* a connection string, which may have a password */
    std::string file;    /* that has the alias in its [databases] */
    std::string command; /* that runs scripts where the file is; empty: it is on this machine */
    Aliases aliases;
};

struct Routing {
    std::vector<Pooler> poolers;
    std::string command; /* of another router, run when the target is open; else empty */
};

/* "--pgbouncer ... --config ... --config-command ..." of all, without passwords; empty if none has
 * a command. */
std::string options_with_commands(const std::vector<Pooler>& poolers);

/* pattern: shard{}; of the only shard of a command also a name without a number. */
Aliases aliases_of(const std::string& pattern, const ShardSet& shards, bool is_only);
/* The routing of the command line, for these aliases of each PgBouncer. */
Routing given_routing(const CutoverOptions& options, const Aliases& aliases);
/* Adds the options that are kept in the schema, where none are given: the PgBouncers that are
 * given replace those that are kept. A command is never taken from the database, because the shell
 * runs it. UsageError if one is needed, is kept and not given again: leads, those of the files;
 * runs_command, that of another router. Else the PgBouncer of such a command has no file. */
void add_kept_routing(Connection& source, const std::string& schema, bool leads, bool runs_command,
                      Routing& given);

/* Keeps the routing in a schema, for its owner alone; in a transaction of the caller. */
void keep_routing(Connection& source, const std::string& schema, const Routing& routing);
