/* snowflake-shard: the arguments of each verb, their help, and the exit code. */

#include <iostream>

#include <CLI/CLI.hpp>

#include "connection.h"
#include "output.h"
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

/* The arguments of the command line, and the verb that they name. */
class Arguments
{
public:
    Arguments()
    {
        app_.set_version_flag("--version", "snowflake-shard " SNOWFLAKE_VERSION);
        app_.require_subcommand(1);
        app_.footer(kNotes);
        add_list();
        add_clone();
        add_run();
        add_diff();
        add_verify();
        add_map();
        add_move();
    }

    void parse(int argc, char** argv) { app_.parse(argc, argv); }
    int run() const { return verb_(options_); }
    /* Prints the help or the error, and returns the exit code. */
    int exit(const CLI::ParseError& error) { return app_.exit(error) == 0 ? kDone : kWrongUsage; }

private:
    CLI::App* add(const char* name, int (*verb)(const Options&), const std::string& description,
                  const std::string& examples)
    {
        CLI::App* command = app_.add_subcommand(name, description);
        command->add_flag("--json", options_.json, "print JSON");
        command->footer("Examples:\n" + examples);
        command->callback([this, verb] { verb_ = verb; });
        return command;
    }

    void add_servers(CLI::App* command)
    {
        command
            ->add_option("DSN", options_.dsns,
                         "connection strings of servers, as for psql: host=db1 dbname=app")
            ->required();
    }

    void add_server(CLI::App* command)
    {
        command->add_option("DSN", options_.dsn, "connection string of the server")->required();
    }

    CLI::Option* add_shards(CLI::App* command)
    {
        return command->add_option("--shards", options_.shards, "shard numbers: 0-1999 or 1,5,7-9");
    }

    void add_list()
    {
        add_servers(
            add("list", list_shards,
                "Lists shards: schema, tables, rows (estimate), size, time of the last ID, server.",
                "  snowflake-shard list 'host=db1 dbname=app' 'host=db2 dbname=app'\n"
                "  snowflake-shard list --json service=db1 | jq '.[] | select(.size > 1e9)'"));
    }

    void add_clone()
    {
        CLI::App* command =
            add("clone", clone_shards,
                "Makes new shards like a template schema: everything that pg_dump writes of it, "
                "without its rows. A shard that is there already and equal is skipped, so that a "
                "range can be resumed; one that differs is an error before anything is made.",
                "  snowflake-shard clone dbname=app insta0 --shards 1-1999 --schema 'insta{}'\n"
                "  snowflake-shard clone dbname=app insta0 --shards 1-1999 --schema 'insta{}' "
                "--jobs 4");
        add_server(command);
        command->add_option("TEMPLATE", options_.template_schema, "schema to be cloned")
            ->required();
        add_shards(command)->required();
        command
            ->add_option("--schema", options_.schema_pattern,
                         "names of the schemas, {} is the shard's number: 'insta{}'")
            ->required();
        command->add_option("--jobs", options_.jobs, "number of connections (default 1)")
            ->check(CLI::Range(1, 64));
    }

    void add_run()
    {
        CLI::App* command =
            add("run", run_on_shards,
                "Runs SQL in every shard: one transaction a shard, with search_path = the shard's "
                "schema. The SQL has no BEGIN, COMMIT or ROLLBACK of its own. Stops at the first "
                "error, and says which shards are done.",
                "  snowflake-shard run dbname=app --shards 0-1999 --sql 'ALTER TABLE photos ADD "
                "place text'\n"
                "  PGOPTIONS='-c lock_timeout=5s' snowflake-shard run dbname=app --shards 0-99 "
                "--file change.sql\n"
                "  snowflake-shard run dbname=app --shards 0-1999 --no-transaction "
                "--sql 'CREATE INDEX CONCURRENTLY ON photos (user_id)'");
        add_server(command);
        add_shards(command)->required();
        auto* file =
            command->add_option("--file", options_.file, "file with SQL; - is the standard input");
        command->add_option("--sql", options_.sql, "SQL")->excludes(file);
        command->add_flag("--keep-going", options_.keep_going,
                          "go on with the next shard after an error");
        command->add_flag("--no-transaction", options_.no_transaction,
                          "one statement by itself: for CREATE INDEX CONCURRENTLY, VACUUM");
    }

    void add_diff()
    {
        CLI::App* command = add(
            "diff", diff_shards,
            "Shows shards whose definition is not the template's, with the statements that differ: "
            "- stands in the template alone, + in the shard alone. Exit code 1 if there are any.",
            "  snowflake-shard diff dbname=app insta0\n"
            "  snowflake-shard diff dbname=app insta0 --shards 1-99 --json");
        add_server(command);
        command->add_option("TEMPLATE", options_.template_schema, "schema to compare with")
            ->required();
        add_shards(command);
    }

    void add_verify()
    {
        CLI::App* command = add(
            "verify", verify_shards,
            "Looks for what must not be: a shard twice, an ID that is not of its schema's shard, a "
            "sequence below its IDs, an ID on two servers. Exit code 1 if there is anything. "
            "Numbers below 2^53 are keys from before an attach, and are not judged.",
            "  snowflake-shard verify 'host=db1 dbname=app' 'host=db2 dbname=app'\n"
            "  snowflake-shard verify --full 'host=db1 dbname=app'");
        add_servers(command);
        command->add_flag("--full", options_.full,
                          "all IDs (default: the ends of the index and a sample of each table)");
    }

    void add_map()
    {
        CLI::App* command = add(
            "map", map_shards, "Shows which shard is where.",
            "  snowflake-shard map 'host=db1 dbname=app' 'host=db2 dbname=app'\n"
            "  snowflake-shard map --format pgbouncer 'host=db1 dbname=app' > databases.ini\n"
            "  snowflake-shard map --format plproxy service=db1 service=db2 | psql dbname=proxy");
        add_servers(command);
        command
            ->add_option("--format", options_.format,
                         "pgbouncer: lines of [databases]; plproxy: SQL for the proxy's database")
            ->check(CLI::IsMember({"table", "json", "csv", "pgbouncer", "plproxy"}));
        command->add_option("--alias", options_.alias,
                            "name of a shard's database in PgBouncer (default shard{})");
        command->add_option("--cluster", options_.cluster,
                            "name of PL/Proxy's cluster (default snowflake)");
    }

    void add_move()
    {
        CLI::App* command = add(
            "move", move_shard,
            "Moves a shard to another server while it is written to. Its rows stay on the source, "
            "closed to writing, until --drop-source. Changes of the definition during a move are "
            "not carried. A move that was interrupted or killed goes on with --resume.",
            "  snowflake-shard move insta5 --from 'host=db1 dbname=app' --to 'host=db2 dbname=app' "
            "--dry-run\n"
            "  snowflake-shard move insta5 --from service=db1 --to service=db2 --pgbouncer "
            "'host=pool port=6432 dbname=pgbouncer' --config /etc/pgbouncer/databases.ini\n"
            "  snowflake-shard move insta5 --from service=db1 --to service=db2 --drop-source");
        command->add_option("SCHEMA", options_.schema, "schema of the shard")->required();
        command->add_option("--from", options_.from, "connection string of its server")->required();
        command->add_option("--to", options_.to, "connection string of its new server")->required();
        auto* kind = command->add_option_group("kind");
        kind->add_flag("--dry-run", options_.is_dry_run, "list what is in the way; change nothing");
        kind->add_flag("--resume", options_.is_resumed, "go on with a move that was interrupted");
        kind->add_flag("--abort", options_.is_aborted, "undo a move, up to the switch");
        kind->add_flag("--drop-source", options_.drops_source, "after a move: drop the old rows");
        kind->require_option(0, 1);
        command->add_option("--source", options_.source,
                            "--from as the server of --to reaches it (default: the same)");
        auto* console = command->add_option("--pgbouncer", options_.pgbouncer,
                                            "connection string of PgBouncer's admin console");
        auto* config = command->add_option("--config", options_.config,
                                           "PgBouncer's file with the [databases]");
        console->needs(config);
        config->needs(console);
        command->add_option("--alias", options_.alias,
                            "name of the shard's database in PgBouncer (default shard{})");
        command
            ->add_option("--max-lag", options_.max_lag,
                         "WAL that is left when the switch begins (default 1MB)")
            ->transform(CLI::AsSizeValue(false));
        command
            ->add_option("--timeout", options_.timeout,
                         "how long writes may wait for the switch, in s or ms (default 10s)")
            ->transform(
                CLI::AsNumberWithUnit(std::map<std::string, double>{{"s", 1}, {"ms", 0.001}}))
            ->check(CLI::PositiveNumber);
        command
            ->add_option(
                "--verify", options_.verify_size,
                "compare all rows of tables up to this size, others by number (default 1GB)")
            ->transform(CLI::AsSizeValue(false));
    }

    CLI::App app_{kDescription, "snowflake-shard"};
    Options options_;
    int (*verb_)(const Options&) = nullptr;
};

int fail(const std::string& message, ExitCode code)
{
    warn(message);
    return code;
}

} // namespace

int main(int argc, char** argv)
{
    try {
        Arguments arguments;
        try {
            arguments.parse(argc, argv);
        } catch (const CLI::ParseError& error) {
            return arguments.exit(error);
        }
        return arguments.run();
    } catch (const UsageError& error) {
        return fail(error.what(), kWrongUsage);
    } catch (const std::exception& error) {
        return fail(error.what(), kFailed);
    }
}
