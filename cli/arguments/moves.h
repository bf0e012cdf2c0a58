/* plan, move and split, and their help. */

#pragma once

#include "arguments/command_line.h"
#include "base/match.h"
#include "move/verb.h"
#include "plan/verb.h"
#include "split/verb.h"

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
struct MoveArguments {
    explicit MoveArguments(CommandLine& command_line) : line(command_line)
    {
        add_plan();
        add_move();
        add_split();
    }

    void add_plan()
    {
        CLI::App* verb = line.add(
            "plan", plan, plan_shards,
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
        CommandLine::add_seconds(verb, "--over", plan.over,
                                 "how long --by writes and --by pages measure (default 60s)");
        /* One value for each: CLI11 would take the connection strings after it, too, which are the
         * servers of the plan. */
        line.add_dsn(verb, "--drain", plan.drain,
                     "server to be emptied; may be given several times")
            ->allow_extra_args(false);
        verb->add_option("--threshold", plan.threshold,
                         "a server this close to the mean counts as balanced (default 10%)")
            ->transform(CLI::Validator(read_percentage, "PERCENTAGE"));
        verb->add_option("--max-moves", plan.max_moves, "no more moves than this")
            ->check(CLI::Range(1, 8192));
        verb->add_option("--exclude", plan.exclude, "shards that stay: 0-7 or 1,5,7-9");
        CommandLine::add_bytes(
            verb, "--rate", plan.rate,
            "bytes copied in a second, to estimate the time of one move after the other "
            "(default 50MB)")
            ->check(CLI::PositiveNumber);
        verb->add_flag("--keep-going", plan.keep_going, kKeepGoing);
        verb->add_option("--format", plan.format, "json: a file for move --plan")
            ->check(CLI::IsMember({"table", "json"}));
    }

    void add_move()
    {
        CLI::App* verb = line.add(
            "move", move, move_shard,
            "Moves a shard to another server while it is written to. Its rows stay on the source, "
            "closed to writing, until --complete. Changes of the definition during a move stop "
            "it. With --hold it ends before the cutover, until --cutover. "
            "--resume continues a move that was interrupted or killed. For a list of "
            "moves, by --shards or --plan, run the same command again to continue.",
            R"(
  snowflake-shard move insta5 --from 'host=db1 dbname=app' --to 'host=db2 dbname=app' --dry-run
  snowflake-shard move insta5 --from service=db1 --to service=db2 \
    --pgbouncer 'host=pool port=6432 dbname=pgbouncer' --config /etc/pgbouncer/databases.ini
  snowflake-shard move insta5 --from service=db1 --to service=db2 --complete
  snowflake-shard plan service=db1 service=db2 service=db3 --json > plan.json
  snowflake-shard move --plan plan.json --jobs 2)");
        /* None of these is required() here: a move is given by SCHEMA or --shards with --from and
         * --to, or by --plan alone. move_shard() checks that. */
        verb->add_option("SCHEMA", move.schema, "schema of the shard");
        verb->add_option("--shards", move.shards, "several shards: 0-7,9");
        verb->add_option("--plan", move.plan,
                         "file that plan --json has written; - is the standard input");
        line.add_dsn(verb, "--from", move.from, "connection string of its server");
        line.add_dsn(verb, "--to", move.to, "connection string of its new server");
        add_work(verb);
        add_kinds(verb);
        verb->add_flag("--reversible", move.is_reversible,
                       "let the old rows follow the new ones, until --undo or --complete");
        line.add_dsn(verb, "--source", move.source,
                     "the source's address as seen from the target (default: --from)");
        line.add_dsn(
            verb, "--target", move.target,
            "the target's address as seen from the source, for --reversible (default: --to)");
        add_cutover(verb, move,
                    "shell command for another router, run when the target is open, with "
                    "SHARD, SCHEMA, HOST, PORT and DBNAME in its environment");
        CommandLine::add_bytes(
            verb, "--verify", move.verify_size,
            "compare all rows of tables up to this size, others by number (default 1GB)");
    }

    /* How many shards, tables and indexes at a time. */
    void add_work(CLI::App* verb)
    {
        verb->add_option("--together", move.together,
                         "shards of a list that move as one set, at most (default 50)")
            ->check(CLI::Range(1, 8192));
        CommandLine::add_bytes(verb, "--together-size", move.together_size,
                               "size of a set of several shards, at most (default 50GB)");
        CommandLine::add_jobs(
            verb, move.jobs,
            "number of sets that move at a time, each between other databases (default 1)");
        CommandLine::add_jobs(verb, move.copy_jobs,
                              "number of tables that a move copies at a time; each takes a "
                              "connection to both servers (default 2)",
                              "--copy-jobs");
        CommandLine::add_jobs(verb, move.index_jobs,
                              "number of large indexes that a move builds at a time; each takes "
                              "maintenance_work_mem of the target (default 2)",
                              "--index-jobs");
    }

    void add_kinds(CLI::App* verb)
    {
        auto* kind = verb->add_option_group("kind");
        kind->add_flag("--dry-run", move.is_dry_run, "list all obstacles; change nothing");
        const auto add_verb = [&](const char* name, Verb value, const char* text) {
            return kind->add_flag_callback(
                name, [this, value] { move.verb = value; }, text);
        };
        add_verb("--hold", Verb::hold, "end when the target follows and all rows were compared");
        kind->add_flag_callback(
            "--rehearse",
            [this] {
                move.verb = Verb::hold;
                move.is_rehearsed = true;
            },
            "--hold, and a report with the expected pause and the commands of the day");
        add_verb("--cutover", Verb::cutover, "let a move that is held go on to its end");
        add_verb("--resume", Verb::resume, "continue a move that was interrupted");
        add_verb("--abort", Verb::abort, "undo a move, until the target is open");
        add_verb("--undo", Verb::undo, "move a shard back that was moved with --reversible");
        add_verb("--complete", Verb::complete,
                 "after a move: drop the old rows, and stop reverse replication");
        kind->require_option(0, 1);
    }

    void add_split()
    {
        CLI::App* verb = line.add(
            "split", split, split_server,
            "Splits a server in two: its standby is promoted, and takes the shards that are named. "
            "Nothing is copied, and clients write meanwhile. Both servers have all rows until "
            "--complete; each is closed to writing for the shards of the other. The promotion is "
            "the point of no return. --resume continues a split that was interrupted or killed.",
            R"(
  snowflake-shard split --from 'host=db1 dbname=app' --standby 'host=db2 dbname=app' \
    --shards 1000-1999 --dry-run
  snowflake-shard split --from service=db1 --standby service=db2 --shards 1000-1999 \
    --pgbouncer 'host=pool port=6432 dbname=pgbouncer' --config /etc/pgbouncer/databases.ini
  snowflake-shard split --from service=db1 --standby service=db2 --complete)");
        line.add_dsn(verb, "--from", split.from, "connection string of the server that is split")
            ->required();
        line.add_dsn(verb, "--standby", split.standby,
                     "connection string of its standby, which is promoted")
            ->required();
        verb->add_option("--shards", split.shards, "the shards that leave: 1000-1999 or 1,5,7-9");
        auto* kind = verb->add_option_group("kind");
        kind->add_flag("--dry-run", split.is_dry_run, "list all obstacles; change nothing");
        kind->add_flag("--resume", split.is_resumed, "continue a split that was interrupted");
        kind->add_flag("--abort", split.is_aborted, "undo a split, up to the promotion");
        kind->add_flag("--complete", split.is_completed,
                       "after a split: drop on each server the shards of the other");
        kind->require_option(0, 1);
        add_cutover(verb, split,
                    "shell command for another router, run when the shards are open, with "
                    "SHARDS, HOST, PORT and DBNAME in its environment");
    }

    /* Options of both move and split. */
    void add_cutover(CLI::App* verb, CutoverOptions& options, const char* switch_command)
    {
        /* One value for each, or the SCHEMA after it would be taken for a second one. The first
         * --config is that of the first --pgbouncer, and so on. */
        line.add_dsn(
                verb, "--pgbouncer", options.pgbouncer,
                "connection string of PgBouncer's admin console; may be given several times, each "
                "with a --config")
            ->allow_extra_args(false);
        verb->add_option("--config", options.config, "PgBouncer's file with the [databases]")
            ->allow_extra_args(false);
        verb->add_option("--config-command", options.config_command,
                         "shell command that runs a script of sh, its last argument, where "
                         "--config is, such as 'ssh app3'; of each --pgbouncer")
            ->allow_extra_args(false);
        verb->add_option("--switch-command", options.switch_command, switch_command);
        verb->add_option("--alias", options.alias,
                         "name of the shard's database in PgBouncer; of several shards with "
                         "{} for the number (default shard{})");
        CommandLine::add_seconds(
            verb, "--max-lag", options.max_lag,
            "how far the target may be behind when the cutover begins: 500ms, 5s (default 1s)");
        CommandLine::add_seconds(
            verb, "--timeout", options.timeout,
            "how long writes may wait for the cutover: 500ms, 2min (default 10s)");
        verb->add_flag("--trust-readers", options.trusts_readers,
                       "the readers of publications FOR ALL TABLES ignore tables that they do not "
                       "know; a subscription does not");
    }

    CommandLine& line;
    PlanOptions plan;
    MoveOptions move;
    SplitOptions split;
};
