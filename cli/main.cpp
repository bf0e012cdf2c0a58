/* snowflake-shard: the arguments of each verb, their help, and the exit code. */

#include <iostream>

#include <CLI/CLI.hpp>

#include "connection.h"
#include "output.h"
#include "similar.h"
#include "verbs.h"

namespace
{

const char* const kDescription =
    "Makes, changes and checks logical shards, the schemas that the extension snowflake numbers, "
    "over one or many PostgreSQL servers.";
const char* const kNotes =
    "Connection strings are those of libpq; passwords come from PGPASSWORD, ~/.pgpass or a service "
    "file. Exit codes: 0 done, 1 found something, 2 wrong usage, 3 failed.\n"
    "snowflake-shard VERB --help shows the options of a verb, with examples.";

const char* const kServer = "connection string of the server";
const char* const kServers = "connection strings of servers, as for psql: host=db1 dbname=app";
const char* const kShards = "shard numbers: 0-1999 or 1,5,7-9";

/* The arguments of the command line, and the verb that they name. */
struct Arguments {
    Arguments()
    {
        app.set_version_flag("--version", "snowflake-shard " SNOWFLAKE_VERSION);
        app.require_subcommand(1);
        app.footer(kNotes);
        add_list();
        add_clone();
        add_run();
        add_diff();
        add_verify();
        add_map();
        add_move();
    }

    CLI::App* add(const char* name, int (*verb_function)(const Options&), const char* description,
                  const char* examples)
    {
        CLI::App* verb = app.add_subcommand(name, description);
        verb->add_flag("--json", options.json, "print JSON");
        verb->footer(std::string("Examples:") + examples);
        verb->callback([this, verb_function] { function = verb_function; });
        return verb;
    }

    void add_list()
    {
        CLI::App* verb =
            add("list", list_shards,
                "Lists shards: schema, tables, rows (estimate), size, time of the last ID, server.",
                R"(
  snowflake-shard list 'host=db1 dbname=app' 'host=db2 dbname=app'
  snowflake-shard list --json service=db1 | jq '.[] | select(.size > 1e9)')");
        verb->add_option("DSN", options.dsns, kServers)->required();
    }

    void add_clone()
    {
        CLI::App* verb =
            add("clone", clone_shards,
                "Makes new shards like a template schema: everything that pg_dump writes of it, "
                "without its rows. A shard that is there already and equal is skipped, so that a "
                "range can be resumed; one that differs is an error before anything is made.",
                R"(
  snowflake-shard clone dbname=app insta0 --shards 1-1999 --schema 'insta{}'
  snowflake-shard clone dbname=app insta0 --shards 1-1999 --schema 'insta{}' --jobs 4)");
        verb->add_option("DSN", options.dsn, kServer)->required();
        verb->add_option("TEMPLATE", options.template_schema, "schema to be cloned")->required();
        verb->add_option("--shards", options.shards, kShards)->required();
        verb->add_option("--schema", options.schema_pattern,
                         "names of the schemas, {} is the shard's number: 'insta{}'")
            ->required();
        verb->add_option("--jobs", options.jobs, "number of connections (default 1)")
            ->check(CLI::Range(1, 64));
    }

    void add_run()
    {
        CLI::App* verb =
            add("run", run_on_shards,
                "Runs SQL in every shard: one transaction a shard, with search_path = the shard's "
                "schema. The SQL has no BEGIN, COMMIT or ROLLBACK of its own. Stops at the first "
                "error, and says which shards are done.",
                R"(
  snowflake-shard run dbname=app --shards 0-1999 --sql 'ALTER TABLE photos ADD place text'
  PGOPTIONS='-c lock_timeout=5s' snowflake-shard run dbname=app --shards 0-99 --file change.sql
  snowflake-shard run dbname=app --shards 0-1999 --no-transaction \
    --sql 'CREATE INDEX CONCURRENTLY ON photos (user_id)')");
        verb->add_option("DSN", options.dsn, kServer)->required();
        verb->add_option("--shards", options.shards, kShards)->required();
        auto* file =
            verb->add_option("--file", options.file, "file with SQL; - is the standard input");
        verb->add_option("--sql", options.sql, "SQL")->excludes(file);
        verb->add_flag("--keep-going", options.keep_going,
                       "go on with the next shard after an error");
        verb->add_flag("--no-transaction", options.no_transaction,
                       "one statement by itself: for CREATE INDEX CONCURRENTLY, VACUUM");
    }

    void add_diff()
    {
        CLI::App* verb = add(
            "diff", diff_shards,
            "Shows shards whose definition is not the template's, with the statements that differ: "
            "- stands in the template alone, + in the shard alone. Exit code 1 if there are any.",
            R"(
  snowflake-shard diff dbname=app insta0
  snowflake-shard diff dbname=app insta0 --shards 1-99 --json)");
        verb->add_option("DSN", options.dsn, kServer)->required();
        verb->add_option("TEMPLATE", options.template_schema, "schema to compare with")->required();
        verb->add_option("--shards", options.shards, kShards);
    }

    void add_verify()
    {
        CLI::App* verb = add(
            "verify", verify_shards,
            "Looks for what must not be: errors of snowflake_check(), an ID that is not of its "
            "schema's shard, a shard that is open on two servers, leftovers of clones and moves. "
            "Exit code 1 if there is anything.",
            R"(
  snowflake-shard verify 'host=db1 dbname=app' 'host=db2 dbname=app'
  snowflake-shard verify --full 'host=db1 dbname=app')");
        verb->add_option("DSN", options.dsns, kServers)->required();
        verb->add_flag("--full", options.full,
                       "all IDs (default: the ends of the index and a sample of each table)");
    }

    void add_map()
    {
        CLI::App* verb = add("map", map_shards, "Shows which shard is where.",
                             R"(
  snowflake-shard map 'host=db1 dbname=app' 'host=db2 dbname=app'
  snowflake-shard map --format pgbouncer 'host=db1 dbname=app' > databases.ini
  snowflake-shard map --format plproxy service=db1 service=db2 | psql dbname=proxy)");
        verb->add_option("DSN", options.dsns, kServers)->required();
        verb->add_option("--format", options.format,
                         "pgbouncer: lines of [databases]; plproxy: SQL for the proxy's database")
            ->check(CLI::IsMember({"table", "json", "csv", "pgbouncer", "plproxy"}));
        verb->add_option("--alias", options.alias,
                         "name of a shard's database in PgBouncer (default shard{})");
        verb->add_option("--cluster", options.cluster,
                         "name of PL/Proxy's cluster (default snowflake)");
    }

    void add_move()
    {
        CLI::App* verb = add(
            "move", move_shard,
            "Moves a shard to another server while it is written to. Its rows stay on the source, "
            "closed to writing, until --drop-source. Changes of the definition during a move are "
            "not carried. A move that was interrupted or killed goes on with --resume.",
            R"(
  snowflake-shard move insta5 --from 'host=db1 dbname=app' --to 'host=db2 dbname=app' --dry-run
  snowflake-shard move insta5 --from service=db1 --to service=db2 \
    --pgbouncer 'host=pool port=6432 dbname=pgbouncer' --config /etc/pgbouncer/databases.ini
  snowflake-shard move insta5 --from service=db1 --to service=db2 --drop-source)");
        verb->add_option("SCHEMA", options.schema, "schema of the shard")->required();
        verb->add_option("--from", options.from, "connection string of its server")->required();
        verb->add_option("--to", options.to, "connection string of its new server")->required();
        auto* kind = verb->add_option_group("kind");
        kind->add_flag("--dry-run", options.is_dry_run, "list what is in the way; change nothing");
        kind->add_flag("--resume", options.is_resumed, "go on with a move that was interrupted");
        kind->add_flag("--abort", options.is_aborted, "undo a move, up to the switch");
        kind->add_flag("--drop-source", options.drops_source, "after a move: drop the old rows");
        kind->require_option(0, 1);
        verb->add_option("--source", options.source,
                         "--from as the server of --to reaches it (default: the same)");
        auto* console = verb->add_option("--pgbouncer", options.pgbouncer,
                                         "connection string of PgBouncer's admin console");
        auto* config =
            verb->add_option("--config", options.config, "PgBouncer's file with the [databases]");
        console->needs(config);
        config->needs(console);
        verb->add_option("--alias", options.alias,
                         "name of the shard's database in PgBouncer (default shard{})");
        verb->add_option("--max-lag", options.max_lag,
                         "WAL that is left when the switch begins (default 1MB)")
            ->transform(CLI::AsSizeValue(false));
        verb->add_option("--timeout", options.timeout,
                         "how long writes may wait for the switch, in s or ms (default 10s)")
            ->transform(
                CLI::AsNumberWithUnit(std::map<std::string, double>{{"s", 1}, {"ms", 0.001}}))
            ->check(CLI::PositiveNumber);
        verb->add_option(
                "--verify", options.verify_size,
                "compare all rows of tables up to this size, others by number (default 1GB)")
            ->transform(CLI::AsSizeValue(false));
    }

    CLI::App app{kDescription, "snowflake-shard"};
    Options options;
    int (*function)(const Options&) = nullptr;
};

/* Options of a group are options of its verb; CLI11 has a group as a subcommand without a name. */
std::vector<std::string> options_of(const CLI::App& verb)
{
    std::vector<std::string> names;
    for (const CLI::Option* option : verb.get_options())
        for (const std::string& name : option->get_lnames())
            names.push_back("--" + name);
    for (const CLI::App* group : verb.get_subcommands(nullptr))
        if (group->get_name().empty())
            for (const std::string& name : options_of(*group))
                names.push_back(name);
    return names;
}

std::vector<std::string> verbs_of(const CLI::App& app)
{
    std::vector<std::string> names;
    for (const CLI::App* verb : app.get_subcommands(nullptr))
        names.push_back(verb->get_name());
    return names;
}

/* A word that is not understood is named before what is missing, which often follows from it; CLI11
 * does it the other way round. */
std::string wrong_usage(const CLI::App& app, const CLI::ParseError& error)
{
    const bool has_verb = app.remaining().empty() && !app.get_subcommands().empty();
    const CLI::App& asked = has_verb ? *app.get_subcommands()[0] : app;
    std::string problem = app.get_subcommands().empty() ? "a verb is missing" : error.what();
    for (const std::string& argument : asked.remaining(true)) {
        const std::string word = argument.substr(0, argument.find('='));
        if (word == "--")
            continue;
        if (word[0] == '-')
            problem = "no option " + word + suggestion(word, options_of(asked));
        else if (has_verb)
            problem = "one argument too many: " + argument;
        else
            problem = "no verb " + word + suggestion(word, verbs_of(app));
        break;
    }
    const std::string verb = has_verb ? asked.get_name() : "";
    return (has_verb ? verb + ": " : "") + problem + "\nHINT:  snowflake-shard " +
           (has_verb ? verb + " --help shows its arguments." : "--help shows the verbs.");
}

} // namespace

int main(int argc, char** argv)
{
    try {
        Arguments arguments;
        try {
            arguments.app.parse(argc, argv);
        } catch (const CLI::ParseError& error) {
            if (error.get_exit_code() != 0)
                throw UsageError(wrong_usage(arguments.app, error));
            return arguments.app.exit(error); /* --help, --version */
        }
        return arguments.function(arguments.options);
    } catch (const UsageError& error) {
        warn(error.what());
        return kWrongUsage;
    } catch (const std::exception& error) {
        warn(error.what());
        return kFailed;
    }
}
