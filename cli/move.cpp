/* snowflake-shard move: a shard goes to another server while it is written to.
 *
 * What a move has done stands in the two databases: each has a schema snowflake_move_N with a row
 * of state. Every step looks at what is there and does the rest, so that a move that was killed is
 * resumed by doing all steps again. The source says that a move exists; the target says whether the
 * shard is open there. */

#include <iostream>
#include <thread>

#include "interrupt.h"
#include "move.h"
#include "output.h"

namespace
{

/* A shard that has left is no shard of the source any more, but the move knows it. */
Shard find_moved(Connection& source, const std::string& schema)
{
    for (const MoveState& move : read_moves(source))
        if (move.schema == schema)
            return {move.shard, schema, source.identifier(schema)};
    return find_shard(source, schema);
}

/* Locks the shard on one side. Nothing that a role or the environment has set may end the move, or
 * make its commits unsafe. */
void prepare(Connection& connection, const std::string& name)
{
    /* The backend of a command that was killed ends soon, and so does its lock. An autovacuum that
     * is in the way is ended after deadlock_timeout. */
    connection.query(R"(
        SELECT set_config(name, setting, false)
        FROM (VALUES ('client_min_messages', 'error'), ('synchronous_commit', 'on'),
                     ('statement_timeout', '0'), ('lock_timeout', '5s'), ('row_security', 'off'),
                     ('idle_in_transaction_session_timeout', '0'), ('idle_session_timeout', '0'),
                     ('client_connection_check_interval', '500ms'), ('deadlock_timeout', '10ms')
             ) AS settings (name, setting)
        WHERE name <> 'deadlock_timeout' OR current_setting('is_superuser') = 'on')");
    try {
        connection.query("SELECT pg_advisory_lock(hashtextextended($1, 0))", {name});
    } catch (const ServerError& error) {
        if (error.sqlstate != kLockTimeout)
            throw;
        throw Failure("another snowflake-shard is moving the shard: it has locked " + name +
                      " on " + connection.server());
    }
    connection.run("SET lock_timeout = 0");
}

} // namespace

Move::Move(const Options& move_options)
    : options(move_options), source(options.from), target(options.to),
      shard(find_moved(source, options.schema)),
      name("snowflake_move_" + std::to_string(shard.number)),
      slot(name + "_" +
           source.query("SELECT oid FROM pg_database WHERE datname = current_database()")
               .text(0, 0)),
      bouncer(options.pgbouncer, options.config, schema_name(options.alias, shard.number))
{
    if (source.server() == target.server())
        throw UsageError("--from and --to are the same: " + source.server());
    prepare(source, name);
    prepare(target, name);
}

Clock::time_point Move::deadline() const
{
    return Clock::now() + std::chrono::milliseconds(static_cast<int>(options.timeout * 1000));
}

std::string Move::title() const
{
    return "shard " + std::to_string(shard.number) + ", schema " + shard.schema;
}

std::string Move::sql(std::string text) const
{
    const std::string mark = "@move@";
    for (std::size_t at = 0; (at = text.find(mark, at)) != std::string::npos;)
        text.replace(at, mark.size(), name);
    return text;
}

std::optional<MoveState> Move::state_of(Connection& connection) const
{
    for (const MoveState& state : read_moves(connection))
        if (state.shard == shard.number)
            return state;
    return {};
}

void stop_if_interrupted()
{
    if (is_interrupted())
        throw Failure("stopped");
}

std::vector<std::string> tables_of(Connection& connection, const Shard& shard,
                                   const std::string& kinds)
{
    return texts_of(connection.query(R"(
        SELECT oid::regclass FROM pg_class
        WHERE relnamespace = $1::regnamespace AND strpos($2, relkind::text) > 0 ORDER BY oid)",
                                     {shard.quoted, kinds}));
}

namespace
{

bool is_open(const std::optional<MoveState>& state)
{
    return state && state->step == "open";
}

/* The two sides know each other, and each its part. A fence must not be lifted by one that asks the
 * wrong target, and the rows of a source must not be dropped as those of a target. */
void require_same_servers(Move& move)
{
    const auto source = move.source_state();
    const auto target = move.target_state();
    const auto require = [&](const std::optional<MoveState>& state, const Connection& here,
                             const Connection& other, const std::string& steps) {
        if (state &&
            (state->other != other.server() || steps.find(state->step) == std::string::npos ||
             (source && target && source->id != target->id)))
            throw Failure("schema " + move.name + " on " + here.server() +
                          " is of another move, with server " + state->other +
                          "\nHINT:  Give --from and --to as they were given when it began.");
    };
    require(source, move.source, move.target, "prepared fenced moved");
    require(target, move.target, move.source, "copying ready open");
    if (source && source->step == "fenced" && !target)
        throw Failure("the source is fenced, and schema " + move.name + " is not on " +
                      move.target.server() +
                      ", so it is not known whether the shard is open there");
}

int end(const Move& move, const std::string& state)
{
    return print_states({{move.shard, state, ""}}, move.options.json);
}

/* Prints the obstacles. SQL does not tell how much space is free. */
int check(Move& move)
{
    Table table = {{"obstacle"}, {}};
    std::string text;
    for (const std::string& obstacle : find_obstacles(move)) {
        table.rows.push_back({obstacle});
        text += obstacle + "\n";
    }
    if (move.options.json && (move.options.is_dry_run || !text.empty()))
        print(table, Format::json);
    else
        std::cout << text;
    if (move.options.is_dry_run) {
        const Result size = move.source.query(R"(
            SELECT pg_size_pretty(coalesce(sum(pg_total_relation_size(oid)), 0))
            FROM pg_class WHERE relnamespace = $1::regnamespace AND relkind IN ('r', 'm'))",
                                              {move.shard.quoted});
        warn(count_of(table.rows.size(), "obstacle") + "; schema " + move.shard.schema + " has " +
             size.text(0, 0) + ": the target needs as much free space, and the source keeps WAL " +
             "until the switch");
    }
    return text.empty() ? kDone : kFound;
}

int run(Move& move)
{
    const auto source = move.source_state();
    const auto target = move.target_state();
    if (source && source->step == "moved" && !target) {
        move.bouncer.resume();
        return end(move, "moved");
    }
    if (!is_open(target)) {
        prepare_source(move);
        stop_if_interrupted();
        prepare_target(move);
        if (move.source_state()->step != "fenced") {
            await_copy(move);
            finish_definition(move);
            await_lag(move);
        }
        switch_over(move);
    }
    move.bouncer.lead_to(move.target);
    move.bouncer.resume();
    std::vector<std::string> differences;
    if (move.snapshot) {
        warn("both: comparing rows");
        differences = compare_rows(move);
    } else {
        warn("the rows are not compared: the shard was opened by a command that ended then");
    }
    warn("both: subscription, slot and publication");
    drop_subscription(move);
    drop_slot_and_publication(move);
    move.source.run(move.sql("UPDATE @move@.state SET step = 'moved'"));
    drop_state(move, move.target);
    for (const std::string& difference : differences)
        warn(difference);
    return differences.empty() ? end(move, "moved") : kFound;
}

int abort(Move& move)
{
    const auto source = move.source_state();
    if (is_open(move.target_state()) || (source && source->step == "moved"))
        throw Failure("the shard has been switched: --resume finishes the move");
    if (source)
        lower_fence(move);
    move.bouncer.resume();
    drop_subscription(move);
    if (move.target_state())
        move.target.run(move.sql("BEGIN; DROP SCHEMA @move@ CASCADE; DROP SCHEMA IF EXISTS ") +
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
    std::string dependents;
    for (const std::string& dependent : find_dependents(move))
        dependents += "\n    " + dependent;
    if (!dependents.empty())
        throw Failure("objects of other schemas would be dropped, too:" + dependents);
    lock_and_run(move.source, move.deadline(), [&] {
        move.source.run("DROP SCHEMA " + move.shard.quoted + " CASCADE; DROP SCHEMA " + move.name +
                        " CASCADE");
    });
    return end(move, "dropped");
}

/* What a move in the other direction has left on the target is an obstacle, as any schema is. */
void require_no_move(Move& move)
{
    const auto source = move.source_state();
    const auto target = move.target_state();
    if (source && source->step == "moved")
        throw Failure("the shard has moved to " + source->other +
                      "\nHINT:  --drop-source drops the rows that it left here.");
    if (source || (target && target->step != "moved"))
        throw Failure("a move of the shard with " + (source ? source : target)->other +
                      " has begun\nHINT:  --resume goes on, --abort undoes it.");
}

} // namespace

int move_shard(const Options& options)
{
    Move move(options);
    if (options.drops_source)
        return drop_source(move);
    if (options.is_resumed || options.is_aborted)
        require_same_servers(move);
    else
        require_no_move(move);
    if (options.is_aborted)
        return abort(move);
    if (options.is_resumed && !move.source_state())
        throw Failure("there is no move of schema " + options.schema + " to be resumed");
    const int found = options.is_resumed ? kDone : check(move);
    if (options.is_dry_run || found != kDone)
        return found;
    note_interrupts();
    try {
        return run(move);
    } catch (const std::exception& error) {
        throw Failure(error.what() + std::string("\nHINT:  snowflake-shard move ... --resume goes "
                                                 "on. Before the target is open, --abort undoes."));
    }
}
