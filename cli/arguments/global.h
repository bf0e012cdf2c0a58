/* The verbs of global, and their help. */

#pragma once

#include "arguments/command_line.h"
#include "global/verb.h"

struct GlobalArguments {
    explicit GlobalArguments(CommandLine& command_line) : line(command_line) { add_global(); }

    void add_global()
    {
        CLI::App* verb = line.app.add_subcommand(
            "global", "Makes tables the same on all servers, and checks that they are: one server "
                      "writes them, and the others follow by logical replication.");
        verb->require_subcommand(1);
        add_global_add(*verb);
        add_global_run(*verb);
        add_global_verify(*verb);
        add_global_remove(*verb);
    }

    void add_global_add(CLI::App& above)
    {
        CLI::App* verb = line.add(
            above, "add", global, ::add_global,
            "Makes tables global: publishes them on the first server of --on, and lets the "
            "other servers follow, where they are made if they are missing, and closed to "
            "writing. Run it again to add a table or a server, or to complete a command that "
            "was killed.",
            R"(
  snowflake-shard global add public.filters --on 'host=db1 dbname=app' 'host=db2 dbname=app'
  snowflake-shard global add public.filters public.tags --on service=db1 @servers.txt
  snowflake-shard global add --on service=db1 service=db4)");
        verb->add_option("TABLE", global.tables,
                         "tables with their schemas: public.filters (default: those that are "
                         "global already)");
        add_on(verb);
        line.add_dsn(
            verb, "--source", global.source,
            "the address of the first server as seen from the others (default: that of --on)");
        verb->add_flag("--trust-owners", global.trusts_owners,
                       "before PostgreSQL 16: let replication run code of the tables' owners with "
                       "the rights of this role");
    }

    void add_global_run(CLI::App& above)
    {
        CLI::App* verb = line.add(
            above, "run", global, ::run_global,
            "Runs SQL that changes the definition of global tables, on all servers: nobody writes "
            "to the tables meanwhile, and the followers have all earlier changes first. The SQL "
            "names each table with its schema. It runs on all servers or on none. If a server is "
            "lost at the end, the same command completes the change there.",
            R"(
  snowflake-shard global run @servers.txt --sql 'ALTER TABLE public.filters ADD place text'
  snowflake-shard global run service=db1 service=db2 --file change.sql)");
        verb->add_option("DSN", global.dsns, kServers);
        auto* sql = verb->add_option("--sql", global.sql, "SQL");
        verb->add_option("--file", global.file, "file with SQL; - is the standard input")
            ->excludes(sql);
        verb->add_option("--role", global.role,
                         "role with whose rights the SQL works (default: the owner of the global "
                         "tables)");
        CommandLine::add_seconds(
            verb, "--timeout", global.timeout,
            "how long the command waits for locks and followers while nobody can "
            "write to the tables (default 10s)");
    }

    void add_global_verify(CLI::App& above)
    {
        CLI::App* verb = line.add(
            above, "verify", global, ::verify_global,
            "Compares the global tables of all servers: definitions, rows, subscriptions, slots, "
            "and the triggers that refuse writes. Clients may write meanwhile. Exit code 1 if "
            "there is anything.",
            R"(
  snowflake-shard global verify @servers.txt)");
        verb->add_option("DSN", global.dsns, kServers);
        verb->add_flag("--keep-going", global.keep_going, kKeepGoing);
    }

    void add_global_remove(CLI::App& above)
    {
        CLI::App* verb = line.add(
            above, "remove", global, ::remove_global,
            "Takes followers away from the first server of --on: their tables stay, with all "
            "rows, and can be written. With tables, only these are global no more; then all "
            "followers must be given.",
            R"(
  snowflake-shard global remove --on service=db1 service=db2
  snowflake-shard global remove public.tags --on service=db1 @servers.txt)");
        verb->add_option("TABLE", global.tables,
                         "tables with their schemas: public.filters (default: all)");
        add_on(verb);
        verb->add_flag("--force", global.is_forced,
                       "go on if the first server cannot be reached, which keeps the slots then");
    }

    void add_on(CLI::App* verb)
    {
        verb->add_option("--on", global.on,
                         "connection strings: first the server where the tables are written, then "
                         "the followers, or @FILE with them")
            ->required();
    }

    CommandLine& line;
    GlobalOptions global;
};
