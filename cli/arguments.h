/* The arguments of each verb, and their help. */

#pragma once

#include <CLI/CLI.hpp>

#include "base/match.h"
#include "global/verb.h"
#include "move/verb.h"
#include "plan/verb.h"
#include "postgres/dsn.h"
#include "split/verb.h"
#include "verbs/verbs.h"

inline const char* const kDescription =
    "Makes, changes and checks logical shards, the schemas that the extension snowflake numbers, "
    "over one or many PostgreSQL servers.";
inline const char* const kNotes =
    "Connection strings are those of libpq; passwords come from PGPASSWORD, ~/.pgpass or a service "
    "file. Exit codes: 0 done, 1 found something, 2 wrong usage, 3 failed.\n"
    "snowflake-shard VERB --help shows the options of a verb, with examples.";

inline const char* const kServers =
    "connection strings of servers, as for psql: host=db1 dbname=app; @FILE has one in each line, "
    "and # begins a comment. Default: the file that SNOWFLAKE_SERVERS names";
inline const char* const kKeepGoing = "continue with the other servers if one fails";
inline const char* const kShards = "shard numbers: 0-1999 or 1,5,7-9";

/* "10%" becomes 0.1. Without a % it could mean either. Returns the error, empty if there is none.
 */
inline std::string read_percentage(std::string& text)
{
    const auto parts = match(text, "^([0-9]{1,3}([.][0-9]{1,9})?)%$");
    if (parts.empty())
        return "\"" + text + "\" is no percentage; it looks like 10%";
    text = std::to_string(std::stod(parts[1]) / 100);
    return "";
}

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
        add_query();
        add_diff();
        add_verify();
        add_map();
        add_plan();
        add_move();
        add_split();
        add_global();
    }

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

    /* Connection strings are checked before the verb does anything: check_dsns(). Those of the
     * servers can come from a file, so ServerSet checks them. */
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

    static void add_jobs(CLI::App* verb, int& value, const char* help)
    {
        verb->add_option("--jobs", value, help)->check(CLI::Range(1, 64));
    }

    void add_list()
    {
        CLI::App* verb =
            add("list", list, list_shards,
                "Lists shards: schema, tables, rows (estimate), size, time of the last ID, server.",
                R"(
  snowflake-shard list 'host=db1 dbname=app' 'host=db2 dbname=app'
  snowflake-shard list --json service=db1 | jq '.[] | select(.size > 1e9)')");
        verb->add_option("DSN", list.dsns, kServers);
    }

    void add_clone()
    {
        CLI::App* verb =
            add("clone", clone, clone_shards,
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
        add_dsn(verb, "--to", clone.to,
                "connection string of the server that gets them (default: the template's)");
        add_jobs(verb, clone.jobs, "number of connections (default 1)");
        verb->add_flag("--keep-going", clone.keep_going,
                       "leave out servers that fail: their shards can be made a second time");
    }

    void add_run()
    {
        CLI::App* verb =
            add("run", run, run_on_shards,
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
        verb->add_option("--shards", run.shards, kShards)->required();
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
        add_jobs(verb, run.jobs, "number of connections to each server (default 1)");
        add_seconds(verb, "--lock-timeout", run.lock_timeout,
                    "how long a statement may wait for a lock: 500ms, 10s, 2min");
        auto* tries = verb->add_option(
            "--tries", run.tries,
            "how often a shard is tried if others are in the way: lock timeout, deadlock or "
            "serialization failure (default 5)");
        tries->check(CLI::Range(1, 1000));
        verb->add_flag("--keep-going", run.keep_going,
                       "continue with the other shards and servers after an error");
        /* A statement outside of a transaction that fails can leave a part of its work, such as an
         * invalid index. It is not tried again, so --tries would have no effect. */
        verb->add_flag("--no-transaction", run.no_transaction,
                       "one statement by itself: for CREATE INDEX CONCURRENTLY, VACUUM")
            ->excludes(tries);
    }

    void add_query()
    {
        CLI::App* verb =
            add("query", query, query_shards,
                "Runs a query in every shard, with search_path = the shard's schema, in a READ "
                "ONLY transaction. Prints the rows of all shards as one table, whose first columns "
                "are shard and schema. Continues if a shard or a server fails, and names it.",
                R"(
  snowflake-shard query @servers.txt --sql 'SELECT count(*) FROM photos'
  snowflake-shard query @servers.txt --shards 0-99 --timeout 10s --format csv \
    --sql "SELECT id, caption FROM photos WHERE caption LIKE '%cat%'" > cats.csv
  snowflake-shard query @servers.txt --since photos.json --format csv \
    --sql 'SELECT id, caption FROM photos WHERE id > $1 AND id <= $2 ORDER BY id' >> photos.csv
  snowflake-shard query @servers.txt --sql 'SELECT user_id, count(*) AS n FROM likes GROUP BY 1' \
    --then 'SELECT user_id, sum(n) FROM rows GROUP BY 1 ORDER BY 2 DESC LIMIT 10')");
        verb->add_option("DSN", query.dsns, kServers);
        verb->add_option("--shards", query.shards, kShards);
        verb->add_option("--sql", query.sql, "one SELECT, VALUES, TABLE or WITH")->required();
        verb->add_option("--format", query.format, "format of the rows (default table)")
            ->check(CLI::IsMember({"table", "csv", "json"}));
        add_jobs(verb, query.jobs, "number of connections to each server (default 1)");
        add_seconds(verb, "--timeout", query.statement_timeout,
                    "statement_timeout of each shard: 500ms, 10s, 2min");
        auto* since = verb->add_option(
            "--since", query.since,
            "file with the last ID of each shard: the SQL has it as $1, and the ID up to which no "
            "new row can appear as $2; the file is replaced when the rows are printed");
        add_seconds(verb, "--settle-timeout", query.settle_timeout,
                    "how long a shard may wait for transactions that have drawn IDs (default 10s)")
            ->needs(since);
        auto* then = verb->add_option(
            "--then", query.then,
            "one SELECT, VALUES, TABLE or WITH over the rows of all shards, which it reads as the "
            "table rows, with the columns shard and schema in front; its rows are printed");
        then->excludes(since);
        verb->add_option("--at", query.at,
                         "server that keeps the table rows meanwhile, as a temporary one (default: "
                         "the first DSN)")
            ->needs(then);
    }

    void add_diff()
    {
        CLI::App* verb = add(
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
        CLI::App* verb = add(
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
    }

    void add_map()
    {
        CLI::App* verb = add("map", map, map_shards, "Shows the server of each shard.",
                             R"(
  snowflake-shard map 'host=db1 dbname=app' 'host=db2 dbname=app'
  snowflake-shard map --format pgbouncer 'host=db1 dbname=app' > databases.ini
  snowflake-shard map --format pgbouncer --search-path service=db1 --replicas service=db1b
  snowflake-shard map --format plproxy service=db1 service=db2 | psql dbname=proxy
  snowflake-shard map --format svg service=db1 service=db2 > map.svg)");
        verb->add_option("DSN", map.dsns, kServers);
        verb->add_flag("--keep-going", map.keep_going, kKeepGoing);
        verb->add_option("--format", map.format,
                         "pgbouncer: lines of [databases]; plproxy: SQL for the proxy's database; "
                         "svg: a picture")
            ->check(CLI::IsMember({"table", "json", "csv", "pgbouncer", "plproxy", "svg"}));
        verb->add_option("--alias", map.alias,
                         "name of a shard's database in PgBouncer (default shard{})");
        verb->add_option("--user", map.user,
                         "user= of each line for PgBouncer, which auth_type = any needs");
        verb->add_flag("--search-path", map.search_path,
                       "let PgBouncer set search_path to the shard's schema in each connection");
        /* One value for each: CLI11 would take the servers behind it, too. */
        add_dsn(verb, "--replicas", map.replicas,
                "standby of one of the servers, for the aliases shard{}_ro; may be given several "
                "times")
            ->allow_extra_args(false);
        verb->add_option("--cluster", map.cluster,
                         "name of PL/Proxy's cluster (default snowflake)");
    }

    void add_plan()
    {
        CLI::App* verb =
            add("plan", plan, plan_shards,
                "Plans the moves that balance the servers, or empty one, and shows each server "
                "before and after. Moves nothing. Every move improves the balance, so that a plan "
                "can be stopped anywhere. Shards of less than a tenth of the median count as empty "
                "and are spread by number. A move must gain at least half of the shard's weight.",
                R"(
  snowflake-shard plan 'host=db1 dbname=app' 'host=db2 dbname=app' 'host=db3 dbname=app'
  snowflake-shard plan service=db1 service=db2 service=db3 --drain service=db1 --exclude 0-7
  snowflake-shard plan service=db1 service=db2 --weights load.csv --json > plan.json)");
        verb->add_option("DSN", plan.dsns, kServers);
        auto* weights = verb->add_option("--weights", plan.weights,
                                         "file of lines shard,weight: load in place of size");
        verb->add_option("--by", plan.by,
                         "size (default), rows, the number of shards, or load: rows written, or "
                         "pages looked at while it is measured")
            ->check(CLI::IsMember({"size", "shards", "rows", "writes", "pages"}))
            ->excludes(weights);
        add_seconds(verb, "--over", plan.over,
                    "how long --by writes and --by pages measure (default 60s)");
        /* One value for each: CLI11 would take the connection strings behind it, too, which are the
         * servers of the plan. */
        add_dsn(verb, "--drain", plan.drain, "server to be emptied; may be given several times")
            ->allow_extra_args(false);
        verb->add_option("--threshold", plan.threshold,
                         "a server this close to the mean counts as balanced (default 10%)")
            ->transform(CLI::Validator(read_percentage, "PERCENTAGE"));
        verb->add_option("--max-moves", plan.max_moves, "no more moves than this")
            ->check(CLI::Range(1, 8192));
        verb->add_option("--exclude", plan.exclude, "shards that stay: 0-7 or 1,5,7-9");
        add_bytes(verb, "--rate", plan.rate,
                  "bytes copied in a second, to estimate the time of one move after the other "
                  "(default 50MB)")
            ->check(CLI::PositiveNumber);
        verb->add_flag("--keep-going", plan.keep_going, kKeepGoing);
        verb->add_option("--format", plan.format, "svg: a picture of the servers and the moves")
            ->check(CLI::IsMember({"table", "json", "svg"}));
    }

    void add_move()
    {
        CLI::App* verb = add(
            "move", move, move_shard,
            "Moves a shard to another server while it is written to. Its rows stay on the source, "
            "closed to writing, until --drop-source. Changes of the definition during a move stop "
            "it. --resume continues a move that was interrupted or killed. For a list of "
            "moves, by --shards or --plan, run the same command again to continue.",
            R"(
  snowflake-shard move insta5 --from 'host=db1 dbname=app' --to 'host=db2 dbname=app' --dry-run
  snowflake-shard move insta5 --from service=db1 --to service=db2 \
    --pgbouncer 'host=pool port=6432 dbname=pgbouncer' --config /etc/pgbouncer/databases.ini
  snowflake-shard move insta5 --from service=db1 --to service=db2 --drop-source
  snowflake-shard plan service=db1 service=db2 service=db3 --json > plan.json
  snowflake-shard move --plan plan.json --jobs 2)");
        /* None of these is required() here: a move is given by SCHEMA or --shards with --from and
         * --to, or by --plan alone. move_shard() checks that. */
        verb->add_option("SCHEMA", move.schema, "schema of the shard");
        verb->add_option("--shards", move.shards, "several shards: 0-7,9");
        verb->add_option("--plan", move.plan,
                         "file that plan --json has written; - is the standard input");
        add_dsn(verb, "--from", move.from, "connection string of its server");
        add_dsn(verb, "--to", move.to, "connection string of its new server");
        add_jobs(verb, move.jobs, "number of moves at a time, one for each server (default 1)");
        auto* kind = verb->add_option_group("kind");
        kind->add_flag("--dry-run", move.is_dry_run, "list all obstacles; change nothing");
        kind->add_flag("--resume", move.is_resumed, "continue a move that was interrupted");
        kind->add_flag("--abort", move.is_aborted, "undo a move, up to the switch");
        kind->add_flag("--undo", move.is_undone,
                       "move a shard back that was moved with --reversible");
        kind->add_flag("--drop-source", move.drops_source,
                       "after a move: drop the old rows, and stop reverse replication");
        kind->require_option(0, 1);
        verb->add_flag("--reversible", move.is_reversible,
                       "let the old rows follow the new ones, until --undo or --drop-source");
        add_dsn(verb, "--source", move.source,
                "the source's address as seen from the target (default: --from)");
        add_dsn(verb, "--target", move.target,
                "the target's address as seen from the source, for --reversible (default: --to)");
        verb->add_flag("--trust-owners", move.trusts_owners,
                       "let replication run code of the shard's owners with the rights of this "
                       "role, if it cannot write as the owners: before PostgreSQL 16, for example");
        add_switch(verb, move,
                   "shell command for another router, run when the target is open, with "
                   "SHARD, SCHEMA, HOST, PORT and DBNAME in its environment");
        add_bytes(verb, "--verify", move.verify_size,
                  "compare all rows of tables up to this size, others by number (default 1GB)");
    }

    void add_split()
    {
        CLI::App* verb = add(
            "split", split, split_server,
            "Splits a server in two: its standby is promoted, and takes the shards that are named. "
            "Nothing is copied, and clients write meanwhile. Both servers have all rows until "
            "--drop-rest; each is closed to writing for the shards of the other. The promotion is "
            "the point of no return. --resume continues a split that was interrupted or killed.",
            R"(
  snowflake-shard split --from 'host=db1 dbname=app' --standby 'host=db2 dbname=app' \
    --shards 1000-1999 --dry-run
  snowflake-shard split --from service=db1 --standby service=db2 --shards 1000-1999 \
    --pgbouncer 'host=pool port=6432 dbname=pgbouncer' --config /etc/pgbouncer/databases.ini
  snowflake-shard split --from service=db1 --standby service=db2 --drop-rest)");
        add_dsn(verb, "--from", split.from, "connection string of the server that is split")
            ->required();
        add_dsn(verb, "--standby", split.standby,
                "connection string of its standby, which is promoted")
            ->required();
        verb->add_option("--shards", split.shards, "the shards that leave: 1000-1999 or 1,5,7-9");
        auto* kind = verb->add_option_group("kind");
        kind->add_flag("--dry-run", split.is_dry_run, "list all obstacles; change nothing");
        kind->add_flag("--resume", split.is_resumed, "continue a split that was interrupted");
        kind->add_flag("--abort", split.is_aborted, "undo a split, up to the promotion");
        kind->add_flag("--drop-rest", split.drops_rest,
                       "after a split: drop on each server the shards of the other");
        kind->require_option(0, 1);
        add_switch(verb, split,
                   "shell command for another router, run when the shards are open, with "
                   "SHARDS, HOST, PORT and DBNAME in its environment");
    }

    void add_global()
    {
        CLI::App* verb = app.add_subcommand(
            "global", "Makes tables the same on all servers, and checks that they are: one server "
                      "writes them, and the others follow by logical replication.");
        verb->require_subcommand(1);
        add_global_add(*verb);
        add_global_verify(*verb);
        add_global_drop(*verb);
    }

    void add_global_add(CLI::App& above)
    {
        CLI::App* verb =
            add(above, "add", global, ::add_global,
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
        add_dsn(verb, "--source", global.source,
                "the address of the first server as seen from the others (default: that of --on)");
        verb->add_flag("--trust-owners", global.trusts_owners,
                       "before PostgreSQL 16: let replication run code of the tables' owners with "
                       "the rights of this role");
    }

    void add_global_verify(CLI::App& above)
    {
        CLI::App* verb = add(
            above, "verify", global, ::verify_global,
            "Compares the global tables of all servers: definitions, rows, subscriptions, slots, "
            "and the triggers that refuse writes. Clients may write meanwhile. Exit code 1 if "
            "there is anything.",
            R"(
  snowflake-shard global verify @servers.txt)");
        verb->add_option("DSN", global.dsns, kServers);
        verb->add_flag("--keep-going", global.keep_going, kKeepGoing);
    }

    void add_global_drop(CLI::App& above)
    {
        CLI::App* verb =
            add(above, "drop", global, ::drop_global,
                "Takes followers away from the first server of --on: their tables stay, with all "
                "rows, and can be written. With tables, only these are global no more; then all "
                "followers must be given.",
                R"(
  snowflake-shard global drop --on service=db1 service=db2
  snowflake-shard global drop public.tags --on service=db1 @servers.txt)");
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

    /* Options of both move and split. */
    void add_switch(CLI::App* verb, SwitchOptions& options, const char* switch_command)
    {
        /* One value for each, or the SCHEMA behind it would be taken for a second one. The first
         * --config is that of the first --pgbouncer, and so on. */
        add_dsn(verb, "--pgbouncer", options.pgbouncer,
                "connection string of PgBouncer's admin console; may be given several times, each "
                "with a --config")
            ->allow_extra_args(false);
        verb->add_option("--config", options.config, "PgBouncer's file with the [databases]")
            ->allow_extra_args(false);
        verb->add_option("--switch-command", options.switch_command, switch_command);
        verb->add_option("--alias", options.alias,
                         "name of the shard's database in PgBouncer (default shard{})");
        add_bytes(verb, "--max-lag", options.max_lag,
                  "bytes of WAL that the target may be behind when the switch begins (default "
                  "1MB)");
        add_seconds(verb, "--timeout", options.timeout,
                    "how long writes may wait for the switch: 500ms, 2min (default 10s)");
    }

    CLI::App app{kDescription, "snowflake-shard"};
    ServerOptions list;
    CloneOptions clone;
    RunOptions run;
    QueryOptions query;
    DiffOptions diff;
    VerifyOptions verify;
    MapOptions map;
    PlanOptions plan;
    MoveOptions move;
    SplitOptions split;
    GlobalOptions global;
    std::vector<std::pair<std::string, std::function<std::vector<std::string>()>>> given_dsns;
    std::function<int()> function;
};
