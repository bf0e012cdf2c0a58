/* The verbs on the shards of many servers, and their help. */

#pragma once

#include "arguments/command_line.h"
#include "verbs/verbs.h"

struct ShardArguments {
    explicit ShardArguments(CommandLine& command_line) : line(command_line)
    {
        add_list();
        add_clone();
        add_run();
        add_query();
        add_diff();
        add_verify();
        add_map();
    }

    void add_list()
    {
        CLI::App* verb = line.add(
            "list", list, list_shards,
            "Lists shards: schema, tables, rows (estimate), size, time of the last ID, server.",
            R"(
  snowflake-shard list 'host=db1 dbname=app' 'host=db2 dbname=app'
  snowflake-shard list --json service=db1 | jq '.[] | select(.size > 1e9)'
  snowflake-shard list --format prometheus @servers.txt > snowflake.prom)");
        verb->add_option("DSN", list.dsns, kServers);
        verb->add_option("--format", list.format,
                         "prometheus: metrics of the servers, and of the shards in transit")
            ->check(CLI::IsMember({"table", "json", "prometheus"}));
    }

    void add_clone()
    {
        CLI::App* verb = line.add(
            "clone", clone, clone_shards,
            "Makes new shards like a template schema: everything that pg_dump writes of it, "
            "without its rows. A shard that is there already and equal is skipped, so that a "
            "range can be resumed; one that differs is an error before anything is made.",
            R"(
  snowflake-shard clone dbname=app --template insta0 --shards 1-1999 --schema 'insta{}' --jobs 4
  snowflake-shard clone @servers.txt --template insta0 --shards 2000-2999 --schema 'insta{}' \
    --to 'host=db4 dbname=app')");
        verb->add_option("DSN", clone.dsns, kServers);
        verb->add_option("--template", clone.template_schema, "schema to be cloned")->required();
        verb->add_option("--shards", clone.shards, kShards)->required();
        verb->add_option("--schema", clone.schema_pattern,
                         "names of the schemas, {} is the shard's number: 'insta{}'")
            ->required();
        line.add_dsn(verb, "--to", clone.to,
                     "connection string of the server that gets them (default: the template's)");
        CommandLine::add_jobs(verb, clone.jobs, "number of connections (default 1)");
        verb->add_flag("--keep-going", clone.keep_going,
                       "leave out servers that fail: their shards can be made a second time");
        verb->add_flag("--dry-run", clone.is_dry_run,
                       "show the shards that would be made; change nothing. Shards that are there "
                       "are not compared");
    }

    void add_run()
    {
        CLI::App* verb = line.add(
            "run", run, run_on_shards,
            "Runs SQL in every shard: one transaction a shard, with search_path = the shard's "
            "schema. The SQL has no BEGIN, COMMIT or ROLLBACK of its own. Stops at the first "
            "error, and says which shards are done. A shard records a change that has a name, "
            "and has it once.",
            R"(
  snowflake-shard run @servers.txt --shards 0-1999 --once 'photos.place' \
    --sql 'ALTER TABLE photos ADD place text' --lock-timeout 2s --jobs 4
  snowflake-shard run @servers.txt --shards 0-1999 --dir migrations
  snowflake-shard run dbname=app --shards 0-1999 --no-transaction \
    --sql 'CREATE INDEX CONCURRENTLY ON photos (user_id)')");
        verb->add_option("DSN", run.dsns, kServers);
        verb->add_option("--shards", run.shards,
                         std::string(kShards) + "; all: those of all servers")
            ->required();
        auto* sql = verb->add_option("--sql", run.sql, "SQL");
        auto* file = verb->add_option("--file", run.file, "file with SQL; - is the standard input")
                         ->excludes(sql);
        auto* once = verb->add_option(
            "--once", run.once,
            "name of the change: a shard that has it is skipped, and the others record it");
        verb->add_option("--dir", run.folder,
                         "folder: its files *.sql in the order of their names, each once, named by "
                         "its file")
            ->excludes(sql)
            ->excludes(file)
            ->excludes(once);
        add_tries(verb);
    }

    /* How the SQL is run, and when run stops. */
    void add_tries(CLI::App* verb)
    {
        CommandLine::add_jobs(verb, run.jobs, "number of connections to each server (default 1)");
        CommandLine::add_seconds(verb, "--lock-timeout", run.lock_timeout,
                                 "how long a statement may wait for a lock: 500ms, 10s, 2min");
        auto* tries = verb->add_option(
            "--tries", run.tries,
            "how often a shard is tried if others are in the way: lock timeout, deadlock or "
            "serialization failure (default 5)");
        tries->check(CLI::Range(1, 1000));
        auto* keep_going =
            verb->add_flag("--keep-going", run.keep_going,
                           "continue with the other shards and servers after an error");
        verb->add_option("--canary", run.canary,
                         "change N shards first, and the others if none of these has failed")
            ->check(CLI::Range(1, kMaxShard + 1));
        verb->add_option("--max-failures", run.max_failures,
                         "stop when so many shards have failed (default 1)")
            ->check(CLI::Range(1, kMaxShard + 1))
            ->excludes(keep_going);
        /* A statement outside of a transaction that fails can leave a part of its work, such as an
         * invalid index. It is not tried again, so --tries would have no effect. */
        verb->add_flag("--no-transaction", run.no_transaction,
                       "one statement by itself: for CREATE INDEX CONCURRENTLY, VACUUM")
            ->excludes(tries);
        verb->add_flag("--dry-run", run.is_dry_run,
                       "show the shards in which the SQL would run; change nothing");
    }

    void add_query()
    {
        CLI::App* verb = line.add(
            "query", query, query_shards,
            "Runs a query in every shard, with search_path = the shard's schema, in a READ "
            "ONLY transaction. Prints the rows of all shards as one table, whose first columns "
            "are shard and schema. Continues if a shard or a server fails, and names it.",
            R"(
  snowflake-shard query @servers.txt --sql 'SELECT count(*) FROM photos'
  snowflake-shard query @servers.txt --shards 0-99 --timeout 10s --format csv \
    --sql "SELECT id, caption FROM photos WHERE caption LIKE '%cat%'" > cats.csv
  snowflake-shard query @servers.txt --since photos.json --format jsonl \
    --sql 'SELECT id, caption FROM photos WHERE id > $1 AND id <= $2 ORDER BY id' >> photos.jsonl
  snowflake-shard query @servers.txt --sql 'SELECT user_id, count(*) AS n FROM likes GROUP BY 1' \
    --then 'SELECT user_id, sum(n) FROM rows GROUP BY 1 ORDER BY 2 DESC LIMIT 10')");
        verb->add_option("DSN", query.dsns, kServers);
        verb->add_option("--shards", query.shards, kShards);
        verb->add_option("--sql", query.sql, "one SELECT, VALUES, TABLE or WITH")->required();
        verb->add_option("--format", query.format, "format of the rows (default table)")
            ->check(CLI::IsMember({"table", "csv", "json", "jsonl"}));
        CommandLine::add_jobs(verb, query.jobs, "number of connections to each server (default 1)");
        CommandLine::add_seconds(verb, "--timeout", query.statement_timeout,
                                 "statement_timeout of each shard: 500ms, 10s, 2min");
        auto* since = verb->add_option(
            "--since", query.since,
            "file with the last ID of each shard: the SQL has it as $1, and the ID up to which no "
            "new row can appear as $2; the file is replaced when the rows are printed");
        CommandLine::add_seconds(
            verb, "--settle-timeout", query.settle_timeout,
            "how long a shard may wait for transactions that have drawn IDs (default 10s)")
            ->needs(since);
        auto* then = verb->add_option(
            "--then", query.then,
            "one SELECT, VALUES, TABLE or WITH over the rows of all shards, which it reads as the "
            "table rows, with the columns shard and schema in front; its rows are printed");
        then->excludes(since);
        line.add_dsn(verb, "--at", query.at,
                     "server that keeps the table rows meanwhile, as a temporary one (default: "
                     "the first DSN)")
            ->needs(then);
    }

    void add_diff()
    {
        CLI::App* verb = line.add(
            "diff", diff, diff_shards,
            "Shows shards whose definition is not the template's, with the statements that differ: "
            "- is only in the template, + only in the shard. Exit code 1 if there are any.",
            R"(
  snowflake-shard diff dbname=app --template insta0
  snowflake-shard diff @servers.txt --template insta0 --shards 1-99 --json)");
        verb->add_option("DSN", diff.dsns, kServers);
        verb->add_option("--template", diff.template_schema, "schema to compare with")->required();
        verb->add_option("--shards", diff.shards, kShards);
        verb->add_flag("--keep-going", diff.keep_going, kKeepGoing);
    }

    void add_verify()
    {
        CLI::App* verb = line.add(
            "verify", verify, verify_shards,
            "Reports errors: those of snowflake_check(), an ID that is not of its "
            "schema's shard, a shard number that two servers use, leftovers of clones and moves. "
            "Exit code 1 if there is anything.",
            R"(
  snowflake-shard verify 'host=db1 dbname=app' 'host=db2 dbname=app'
  snowflake-shard verify --full 'host=db1 dbname=app')");
        verb->add_option("DSN", verify.dsns, kServers);
        verb->add_flag("--keep-going", verify.keep_going, kKeepGoing);
        verb->add_flag("--full", verify.full,
                       "all IDs (default: the ends of the index and a sample of each table)");
        verb->add_flag("--rows", verify.rows,
                       "compare the rows of shards with copies that follow them");
        CommandLine::add_jobs(verb, verify.jobs,
                              "number of connections to each server (default 1)");
    }

    void add_map()
    {
        CLI::App* verb = line.add("map", map, map_shards, "Shows the server of each shard.",
                                  R"(
  snowflake-shard map 'host=db1 dbname=app' 'host=db2 dbname=app'
  snowflake-shard map --format pgbouncer 'host=db1 dbname=app' > databases.ini
  snowflake-shard map --format pgbouncer --search-path service=db1 --replicas service=db1b
  snowflake-shard map --format plproxy service=db1 service=db2 | psql dbname=proxy)");
        verb->add_option("DSN", map.dsns, kServers);
        verb->add_flag("--keep-going", map.keep_going, kKeepGoing);
        verb->add_option("--format", map.format,
                         "pgbouncer: lines of [databases]; plproxy: SQL for the proxy's database")
            ->check(CLI::IsMember({"table", "json", "csv", "pgbouncer", "plproxy"}));
        verb->add_option("--alias", map.alias,
                         "name of a shard's database in PgBouncer (default shard{})");
        verb->add_option("--user", map.user,
                         "user= of each line for PgBouncer, which auth_type = any needs");
        verb->add_flag("--search-path", map.search_path,
                       "let PgBouncer set search_path to the shard's schema in each connection");
        /* One value for each: CLI11 would take the servers after it, too. */
        line.add_dsn(
                verb, "--replicas", map.replicas,
                "standby of one of the servers, for the aliases shard{}_ro; may be given several "
                "times")
            ->allow_extra_args(false);
        verb->add_option("--cluster", map.cluster,
                         "name of PL/Proxy's cluster (default snowflake)");
    }

    CommandLine& line;
    ListOptions list;
    CloneOptions clone;
    RunOptions run;
    QueryOptions query;
    DiffOptions diff;
    VerifyOptions verify;
    MapOptions map;
};
