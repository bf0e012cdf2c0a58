/* The command line: its verbs, and the kinds of values that their options take. */

#pragma once

#include <CLI/CLI.hpp>

#include "arguments/help.h"
#include "postgres/dsn.h"

inline const char* const kDescription =
    "Makes, changes and checks logical shards, the schemas that the extension snowflake numbers, "
    "over one or many PostgreSQL servers.";
inline const char* const kNotes =
    "Connection strings are those of libpq; passwords come from PGPASSWORD, ~/.pgpass or a service "
    "file. Exit codes: 0 done, 1 found something, 2 wrong usage, 3 failed.\n"
    "snowflake-shard help VERB shows the options of a verb, with examples.";

inline const char* const kServers =
    "connection strings of servers, as for psql: host=db1 dbname=app; @FILE has one in each line, "
    "and # begins a comment. Default: the file that SNOWFLAKE_SERVERS names";
inline const char* const kKeepGoing = "continue with the other servers if one fails";
inline const char* const kShards = "shard numbers: 0-1999 or 1,5,7-9";

struct CommandLine {
    CommandLine()
    {
        app.formatter(std::make_shared<Help>());
        app.set_version_flag("--version", "snowflake-shard " SNOWFLAKE_VERSION);
        app.require_subcommand(1);
        app.footer(kNotes);
    }
    CommandLine(const CommandLine&) = delete;
    CommandLine& operator=(const CommandLine&) = delete;

    template <typename Options>
    CLI::App* add(const char* name, Options& options, int (*verb_function)(const Options&),
                  const char* description, const char* examples)
    {
        return add(app, name, options, verb_function, description, examples);
    }

    /* above: the program, or a verb that has verbs of its own. */
    template <typename Options>
    CLI::App* add(CLI::App& above, const char* name, Options& options,
                  int (*verb_function)(const Options&), const char* description,
                  const char* examples)
    {
        CLI::App* verb = above.add_subcommand(name, description);
        verb->add_flag("--json", options.json, "print JSON");
        verb->footer(std::string("Examples:") + examples);
        /* The callback only notes the verb. main() calls it when all arguments are read, outside of
         * the handler of CLI11's errors. */
        verb->callback([this, &options, verb_function] {
            function = [&options, verb_function] { return verb_function(options); };
        });
        return verb;
    }

    /* Connection strings are checked before the verb does anything: check_dsns(). The strings of
     * the servers can come from a file, so ServerSet checks them. */
    template <typename Value>
    CLI::Option* add_dsn(CLI::App* verb, const std::string& option, Value& value, const char* help)
    {
        given_dsns.emplace_back(option, [&value] { return list_of(value); });
        return verb->add_option(option, value, help);
    }
    static std::vector<std::string> list_of(const std::string& dsn) { return {dsn}; }
    static std::vector<std::string> list_of(const std::vector<std::string>& dsns) { return dsns; }

    void check_dsns() const
    {
        for (const auto& [option, read] : given_dsns)
            for (const std::string& dsn : read())
                check_dsn(dsn, option);
    }

    /* The units of PostgreSQL; without one it is seconds. The check comes after the transformation:
     * CLI11 puts transformations first. 0 is refused: it stands for the server's own setting. */
    static CLI::Option* add_seconds(CLI::App* verb, const char* option, double& value,
                                    const char* help)
    {
        return verb->add_option(option, value, help)
            ->transform(CLI::AsNumberWithUnit(std::map<std::string, double>{
                {"us", 0.000001}, {"ms", 0.001}, {"s", 1}, {"min", 60}, {"h", 3600}}))
            ->check(CLI::PositiveNumber);
    }

    /* A kB is 1,024 bytes, as in PostgreSQL's own settings. */
    static CLI::Option* add_bytes(CLI::App* verb, const char* option, std::uint64_t& value,
                                  const char* help)
    {
        return verb->add_option(option, value, help)->transform(CLI::AsSizeValue(false));
    }

    static void add_jobs(CLI::App* verb, int& value, const char* help, const char* name = "--jobs")
    {
        verb->add_option(name, value, help)->check(CLI::Range(1, 64));
    }

    CLI::App app{kDescription, "snowflake-shard"};
    std::vector<std::pair<std::string, std::function<std::vector<std::string>()>>> given_dsns;
    std::function<int()> function; /* the verb that was given */
};
