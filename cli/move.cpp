/* snowflake-shard move: a shard goes to another server while it is written to.
 *
 * What a move has done stands in the two databases: each has a schema snowflake_move_N with a row
 * of state. Every step looks at what is there and does the rest, so that a move that was killed is
 * resumed by doing all steps again. The source says that a move exists; the target says whether the
 * shard is open there. */

#include <csignal>
#include <iostream>

#include "move.h"
#include "move_switch.h"
#include "output.h"

namespace
{

volatile std::sig_atomic_t interrupted = 0;

/* A second Ctrl-C ends the program. */
void note_interrupt(int signal)
{
    interrupted = 1;
    std::signal(signal, SIG_DFL);
}

/* A shard that has left is no shard of the source any more, but the move knows it. */
Shard find_moved(Connection& source, const std::string& schema)
{
    for (const MoveState& move : read_moves(source))
        if (move.schema == schema)
            return {move.shard, schema, source.identifier(schema)};
    return find_shard(source, schema);
}

/* Nothing that a role or the environment has set may end a move, or make its commits unsafe. */
void prepare(Connection& connection)
{
    connection.run("SET client_min_messages = error; SET synchronous_commit = on;"
                   "SET statement_timeout = 0; SET lock_timeout = 0; SET row_security = off;"
                   "SET idle_in_transaction_session_timeout = 0; SET idle_session_timeout = 0;"
                   /* the backend of a command that was killed ends soon, and so does its lock */
                   "SET client_connection_check_interval = '500ms'");
    /* An autovacuum that is in the way is ended after this time. */
    connection.query("SELECT pg_catalog.set_config('deadlock_timeout', '10ms', false) "
                     "WHERE pg_catalog.current_setting('is_superuser') = 'on'");
}

/* The lock of a command that was killed is there until its backend has noticed. */
void lock_shard(Connection& connection, const std::string& name)
{
    const auto deadline = Clock::now() + std::chrono::seconds(5);
    while (!connection
                .query("SELECT pg_catalog.pg_try_advisory_lock(pg_catalog.hashtextextended($1, 0))",
                       {name})
                .flag(0, 0)) {
        if (Clock::now() > deadline)
            throw Failure("another snowflake-shard is moving the shard: it has locked " + name +
                          " on " + connection.server());
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
}

} // namespace

Move::Move(const Options& move_options)
    : options(move_options), source(options.from), target(options.to),
      shard(find_moved(source, options.schema)),
      name("snowflake_move_" + std::to_string(shard.number)),
      slot(name + "_" +
           source
               .query("SELECT oid FROM pg_catalog.pg_database WHERE datname = "
                      "pg_catalog.current_database()")
               .text(0, 0))
{
    if (source.server() == target.server())
        throw UsageError("--from and --to are the same: " + source.server());
    prepare(source);
    prepare(target);
    lock_shard(source, name);
    lock_shard(target, name);
}

Clock::time_point Move::deadline() const
{
    return Clock::now() + std::chrono::milliseconds(static_cast<int>(options.timeout * 1000));
}

std::optional<MoveState> Move::state_of(Connection& connection) const
{
    for (const MoveState& state : read_moves(connection))
        if (state.shard == shard.number)
            return state;
    return {};
}

bool is_lock_error(const ServerError& error)
{
    return error.sqlstate == "55P03" || error.sqlstate == "40P01"; /* lock timeout, deadlock */
}

void stop_if_interrupted()
{
    if (interrupted != 0)
        throw Failure("stopped");
}

void hold_interrupts()
{
    for (const int signal : {SIGINT, SIGTERM, SIGHUP})
        std::signal(signal, SIG_IGN);
}

void heed_interrupts()
{
    for (const int signal : {SIGINT, SIGTERM, SIGHUP})
        std::signal(signal, note_interrupt);
}

namespace
{

/* The two sides know each other. A fence must not be lifted by one that asks the wrong target. */
void require_same_servers(Move& move)
{
    const auto source = move.source_state();
    const auto target = move.target_state();
    const auto require = [&](bool holds, const Connection& here, const std::string& other) {
        if (!holds)
            throw Failure("schema " + move.name + " on " + here.server() +
                          " is of a move with server " + other +
                          "\nHINT:  Give the servers as they were given when it began.");
    };
    if (source)
        require(source->other == move.target.server(), move.source, source->other);
    if (target)
        require(target->other == move.source.server(), move.target, target->other);
    if (source && target)
        require(source->id == target->id, move.target, target->other);
    if (source && source->step == "fenced" && !target)
        throw Failure("the source is fenced, and schema " + move.name + " is not on " +
                      move.target.server() +
                      ", so it is not known whether the shard is open there");
}

std::string lines_of(const std::vector<std::string>& texts)
{
    std::string lines;
    for (const std::string& text : texts)
        lines += "\n    " + text;
    return lines;
}

int end(const Move& move, const std::string& state)
{
    return print_states({{move.shard, state, ""}}, move.options.json);
}

/* SQL does not tell how much space is free. */
void tell_size(Move& move)
{
    const Result size = move.source.query(
        "SELECT pg_catalog.pg_size_pretty(coalesce(pg_catalog.sum("
        "pg_catalog.pg_total_relation_size(c.oid)), 0)) FROM pg_catalog.pg_class AS c JOIN "
        "pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace "
        "WHERE n.nspname = $1 AND c.relkind IN ('r', 'm')",
        {move.shard.schema});
    warn("schema " + move.shard.schema + " has " + size.text(0, 0) +
         ": the target needs as much free space, and the source keeps WAL until the switch");
}

void print_obstacles(const Move& move, const std::vector<std::string>& obstacles)
{
    Table table = {{"obstacle"}, {}};
    for (const std::string& obstacle : obstacles)
        table.rows.push_back({obstacle});
    if (move.options.json && (move.options.is_dry_run || !obstacles.empty()))
        return print(table, Format::json);
    for (const std::string& obstacle : obstacles)
        std::cout << obstacle << "\n";
    if (move.options.is_dry_run)
        std::cout << count_of(obstacles.size(), "obstacle") << "\n";
}

bool is_open(const std::optional<MoveState>& state)
{
    return state && state->step == "open";
}

void go(Move& move, PgBouncer& bouncer, Connection& snapshot)
{
    prepare_source(move);
    stop_if_interrupted();
    prepare_target(move);
    if (move.source_state()->step != "fenced") {
        await_copy(move);
        finish_definition(move);
        await_lag(move);
    }
    switch_over(move, bouncer, snapshot);
}

int run(Move& move, PgBouncer& bouncer)
{
    const auto source = move.source_state();
    if (source && source->step == "moved" && !move.target_state()) {
        bouncer.resume();
        return end(move, "moved");
    }
    std::vector<std::string> differences;
    if (is_open(move.target_state())) {
        hold_interrupts();
        reroute(move, bouncer);
        warn("the rows are not compared: the shard was opened by a command that ended then");
    } else {
        Connection snapshot(move.options.to);
        go(move, bouncer, snapshot);
        reroute(move, bouncer);
        warn("both: comparing rows");
        differences = compare_rows(move, snapshot);
    }
    clean_up(move);
    for (const std::string& difference : differences)
        warn(difference);
    return differences.empty() ? end(move, "moved") : kFound;
}

int abort(Move& move, PgBouncer& bouncer)
{
    const auto source = move.source_state();
    if (is_open(move.target_state()) || (source && source->step == "moved"))
        throw Failure("the shard has been switched: --resume finishes the move");
    hold_interrupts();
    if (source)
        lower_fence(move);
    bouncer.resume();
    drop_subscription(move);
    if (move.target_state())
        move.target.run("BEGIN; DROP SCHEMA " + move.name + " CASCADE; DROP SCHEMA IF EXISTS " +
                        move.shard.quoted + " CASCADE; COMMIT");
    drop_slot_and_publication(move);
    drop_state(move, move.source);
    return end(move, "aborted");
}

int drop_source(Move& move)
{
    const auto state = move.source_state();
    if (!state || state->step != "moved")
        throw Failure("schema " + move.shard.schema + " of " + move.source.server() +
                      " has not been moved");
    if (find_shard(move.target, move.shard.schema).number != move.shard.number)
        throw Failure("schema " + move.shard.schema + " of " + move.target.server() +
                      " is another shard");
    const std::vector<std::string> dependents = find_dependents(move);
    if (!dependents.empty())
        throw Failure("objects of other schemas would be dropped, too:" + lines_of(dependents));
    lock_and_run(move.source, move.deadline(), [&] {
        move.source.run("DROP SCHEMA " + move.shard.quoted + " CASCADE; DROP SCHEMA " + move.name +
                        " CASCADE");
    });
    return end(move, "dropped");
}

} // namespace

int move_shard(const Options& options)
{
    Move move(options);
    PgBouncer bouncer(options.pgbouncer, options.config,
                      schema_name(options.alias, move.shard.number));
    if (options.drops_source)
        return drop_source(move);
    const auto old = move.target_state();
    const bool has_left = old && old->step == "moved";
    if (has_left && (options.is_aborted || options.is_resumed))
        throw Failure("this is no move to " + move.target.server() +
                      ": the shard has moved from "
                      "there to " +
                      old->other);
    if (!has_left)
        require_same_servers(move);
    if (options.is_aborted)
        return abort(move, bouncer);
    const auto begun = move.source_state();
    if (!options.is_resumed && begun && begun->step == "moved")
        throw Failure("the shard has moved to " + begun->other +
                      "\nHINT:  --drop-source drops the rows that it left here.");
    if (!options.is_resumed && (begun || (old && !has_left)))
        throw Failure("a move of the shard has begun\nHINT:  --resume goes on, --abort undoes it.");
    if (options.is_resumed && !begun)
        throw Failure("there is no move of schema " + options.schema + " to be resumed");
    if (!options.is_resumed) {
        const std::vector<std::string> obstacles = find_obstacles(move);
        print_obstacles(move, obstacles);
        if (options.is_dry_run)
            tell_size(move);
        if (options.is_dry_run || !obstacles.empty())
            return obstacles.empty() ? kDone : kFound;
    }
    heed_interrupts();
    try {
        return run(move, bouncer);
    } catch (const std::exception& error) {
        throw Failure(error.what() + std::string("\nHINT:  snowflake-shard move ... --resume goes "
                                                 "on. Before the target is open, --abort undoes."));
    }
}
