/* How clients are led to the shard, as the command line says it. The source of a move keeps it, so
 * that --resume and --abort cannot forget it. */

#pragma once

#include <string>
#include <vector>

#include "move/pooler_file.h"
#include "move/session.h"
#include "verbs.h"

struct Pooler {
    std::string console; /* a connection string, which may have a password */
    std::string file;    /* that has the alias in its [databases] */
    Aliases aliases;
};

struct Routing {
    std::vector<Pooler> poolers;
    std::string command; /* of another router, run when the target is open; else empty */
};

/* As the command line has it, for these aliases of each PgBouncer. */
Routing given_routing(const Options& options, const Aliases& aliases);
/* Adds the options that are kept in the schema home, where none are given. runs_command: UsageError
 * if a command is kept and not given again. */
void add_kept_routing(Connection& source, const std::string& home, bool runs_command,
                      Routing& given);

/* Of a move to be resumed or aborted: the PgBouncers that are given replace those that are kept. A
 * command is never taken from the database, because the shell runs it: UsageError if it has to be
 * given again. */
Routing choose_routing(const Options& options, Connection& source, const Move& move);

/* In a schema, for its owner alone; in a transaction of the caller. */
void keep_routing(Connection& source, const std::string& home, const Routing& routing);
