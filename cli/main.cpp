/* snowflake-shard: the arguments of each verb, their help, and the exit code. */

#include <iostream>

#include <CLI/CLI.hpp>

#include "error.h"
#include "output.h"

#include "verbs.h"

namespace
{

const char* const kDsns = "connection strings of servers, as for psql: host=db1 dbname=app";

/* The verb that was chosen, with its arguments. */
using Run = std::function<int()>;

void add_list(CLI::App& app, Run& run)
{
    auto* verb = app.add_subcommand(
        "list",
        "Lists shards: schema, tables, rows (estimate), size, time of the last ID, server.");
    const auto options = std::make_shared<ListOptions>();
    verb->add_option("DSN", options->dsns, kDsns)->required();
    verb->add_flag("--json", options->json, "print JSON");
    verb->footer("Examples:\n"
                 "  snowflake-shard list 'host=db1 dbname=app' 'host=db2 dbname=app'\n"
                 "  snowflake-shard list --json service=db1 | jq '.[] | select(.size > 1e9)'");
    verb->callback([options, &run] { run = [options] { return list_shards(*options); }; });
}

void add_clone(CLI::App& app, Run& run)
{
    auto* verb = app.add_subcommand(
        "clone",
        "Makes new shards like a template schema: everything that pg_dump writes of it, without "
        "its rows. A shard that is there already and equal is skipped, so that a range can be "
        "resumed; one that differs is an error before anything is made.");
    const auto options = std::make_shared<CloneOptions>();
    verb->add_option("DSN", options->dsn, "connection string of the server")->required();
    verb->add_option("TEMPLATE", options->template_schema, "schema to be cloned")->required();
    verb->add_option("--shards", options->shards, "numbers of the new shards: 1-1999 or 1,5,7-9")
        ->required();
    verb->add_option("--schema", options->schema_pattern,
                     "name of the new schemas, {} is the shard's number: 'insta{}'")
        ->required();
    verb->add_option("--jobs", options->jobs, "number of connections that make clones (default 1)")
        ->check(CLI::Range(1, 64));
    verb->add_flag("--json", options->json, "print JSON");
    verb->footer(
        "Examples:\n"
        "  snowflake-shard clone dbname=app insta0 --shards 1-1999 --schema 'insta{}'\n"
        "  snowflake-shard clone dbname=app insta0 --shards 1-1999 --schema 'insta{}' --jobs 4");
    verb->callback([options, &run] { run = [options] { return clone_shards(*options); }; });
}

void add_run(CLI::App& app, Run& run)
{
    auto* verb = app.add_subcommand(
        "run",
        "Runs SQL in every shard: one transaction a shard, with search_path = the shard's schema. "
        "Stops at the first error, and says which shards are done.");
    const auto options = std::make_shared<RunOptions>();
    verb->add_option("DSN", options->dsn, "connection string of the server")->required();
    verb->add_option("--shards", options->shards, "numbers of the shards: 0-1999 or 1,5,7-9")
        ->required();
    auto* source = verb->add_option_group("source");
    source->add_option("--file", options->file, "file with SQL; - is the standard input");
    source->add_option("--sql", options->sql, "SQL");
    source->require_option(1);
    verb->add_flag("--keep-going", options->keep_going, "go on with the next shard after an error");
    verb->add_flag("--no-transaction", options->no_transaction,
                   "each statement by itself: for CREATE INDEX CONCURRENTLY, VACUUM");
    verb->add_flag("--json", options->json, "print JSON");
    verb->footer("Examples:\n"
                 "  snowflake-shard run dbname=app --shards 0-1999 --sql 'ALTER TABLE photos ADD "
                 "COLUMN place text'\n"
                 "  PGOPTIONS='-c lock_timeout=5s' snowflake-shard run dbname=app --shards 0-1999 "
                 "--file change.sql\n"
                 "  snowflake-shard run dbname=app --shards 0-1999 --no-transaction "
                 "--sql 'CREATE INDEX CONCURRENTLY ON photos (user_id)'");
    verb->callback([options, &run] { run = [options] { return run_on_shards(*options); }; });
}

void add_diff(CLI::App& app, Run& run)
{
    auto* verb = app.add_subcommand(
        "diff",
        "Shows shards whose definition is not the template's, with the statements that differ: - "
        "stands in the template alone, + in the shard alone. Exit code 1 if there are any.");
    const auto options = std::make_shared<DiffOptions>();
    verb->add_option("DSN", options->dsn, "connection string of the server")->required();
    verb->add_option("TEMPLATE", options->template_schema, "schema to compare with")->required();
    verb->add_option("--shards", options->shards, "only these shards (default: all)");
    verb->add_flag("--json", options->json, "print JSON");
    verb->footer("Examples:\n"
                 "  snowflake-shard diff dbname=app insta0\n"
                 "  snowflake-shard diff dbname=app insta0 --shards 1-99 --json");
    verb->callback([options, &run] { run = [options] { return diff_shards(*options); }; });
}

void add_verify(CLI::App& app, Run& run)
{
    auto* verb = app.add_subcommand(
        "verify",
        "Looks for what must not be: a shard twice, an ID that is not of its schema's shard, a "
        "sequence below its IDs, an ID on two servers. Exit code 1 if there is anything. Numbers "
        "below 2^53 are keys from before an attach, and are not judged.");
    const auto options = std::make_shared<VerifyOptions>();
    verb->add_option("DSN", options->dsns, kDsns)->required();
    verb->add_flag("--full", options->full,
                   "all IDs (default: the ends of the index and a sample of each table)");
    verb->add_flag("--json", options->json, "print JSON");
    verb->footer("Examples:\n"
                 "  snowflake-shard verify 'host=db1 dbname=app' 'host=db2 dbname=app'\n"
                 "  snowflake-shard verify --full 'host=db1 dbname=app'");
    verb->callback([options, &run] { run = [options] { return verify_shards(*options); }; });
}

void add_map(CLI::App& app, Run& run)
{
    auto* verb = app.add_subcommand("map", "Shows which shard is where.");
    const auto options = std::make_shared<MapOptions>();
    verb->add_option("DSN", options->dsns, kDsns)->required();
    verb->add_option(
            "--format", options->format,
            "table, json, csv, pgbouncer (lines of [databases]), plproxy (SQL for the proxy)")
        ->check(CLI::IsMember({"table", "json", "csv", "pgbouncer", "plproxy"}));
    verb->add_option("--alias", options->alias,
                     "name of a shard's database in PgBouncer (default shard{})");
    verb->add_option("--cluster", options->cluster,
                     "name of PL/Proxy's cluster (default snowflake)");
    verb->add_flag("--json", options->json, "the same as --format json");
    verb->footer(
        "Examples:\n"
        "  snowflake-shard map 'host=db1 dbname=app' 'host=db2 dbname=app'\n"
        "  snowflake-shard map --format pgbouncer 'host=db1 dbname=app' > databases.ini\n"
        "  snowflake-shard map --format plproxy service=db1 service=db2 | psql dbname=proxy");
    verb->callback([options, &run] { run = [options] { return map_shards(*options); }; });
}

int report(const std::string& message, int exit_code)
{
    warn(message);
    return exit_code;
}

} // namespace

int main(int argc, char** argv)
{
    CLI::App app("Makes, changes and checks logical shards, the schemas that the extension "
                 "snowflake numbers, "
                 "over one or many PostgreSQL servers.",
                 "snowflake-shard");
    app.set_version_flag("--version", "snowflake-shard " SNOWFLAKE_VERSION);
    app.require_subcommand(1);
    app.footer("Connection strings are those of libpq; passwords come from PGPASSWORD, ~/.pgpass "
               "or a service "
               "file. Exit codes: 0 done, 1 found something, 2 wrong usage, 3 failed.\n"
               "snowflake-shard VERB --help shows the options of a verb, with examples.");
    Run run;
    for (const auto add : {add_list, add_clone, add_run, add_diff, add_verify, add_map})
        add(app, run);
    try {
        app.parse(argc, argv);
        return run();
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? kDone : kWrongUsage;
    } catch (const UsageError& error) {
        return report(error.what(), kWrongUsage);
    } catch (const std::exception& error) {
        return report(error.what(), kFailed);
    }
}
