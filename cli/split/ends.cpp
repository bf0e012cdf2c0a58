/* The other ends of a split: --abort before the promotion, --complete after the cutover. */

#include "base/interrupt.h"
#include "base/output.h"
#include "base/timeouts.h"
#include "fleet/in_transit.h"
#include "cutover/dependents.h"
#include "cutover/unwritten.h"
#include "cutover/waiting.h"
#include "postgres/drop_schemas.h"
#include "postgres/identity.h"
#include "split/command.h"
#include "split/fence.h"
#include "split/standby.h"

namespace
{

/* Returns how many shards were dropped. All dependents are looked for before the first DROP, which
 * would drop them by its CASCADE. A schema that is gone has been dropped by an earlier command.
 *
 * Each schema is dropped in a transaction of its own: it locks every table of the schema, and an
 * interrupted command keeps the result of those before. */
std::size_t drop_closed_shards(Connection& connection)
{
    const auto state = read_split(connection);
    if (!state)
        return 0;
    if (state->is_under_way())
        throw Failure("the split is not at its end on " + connection.server() +
                      "\nHINT:  " + next_commands(*state));
    /* leaves <> is_new: on the new server those that stayed, on the old one those that left. */
    const Result rest = connection.query(R"(
        SELECT number, nspname, quote_ident(nspname)
        FROM snowflake_split.shards JOIN pg_namespace ON nspname = schema_name
        WHERE leaves <> $1::boolean ORDER BY 1)",
                                         {state->is_new ? "true" : "false"});
    Shards closed;
    for (int i = 0; i < rest.rows(); i++)
        closed.push_back({static_cast<int>(rest.number(i, 0)), rest.text(i, 1), rest.text(i, 2)});
    require_none_dropped(connection, closed);
    if (!closed.empty())
        require_unwritten(connection, split_fence(), !state->is_new,
                          (state->is_new ? state->old_server : state->new_server).text());
    Progress progress("rest of " + connection.server(), static_cast<std::size_t>(rest.rows()));
    for (int i = 0; i < rest.rows(); i++, progress.step()) {
        stop_if_interrupted();
        lock_and_run_naming(connection, Clock::now() + timeouts::kPatientLock,
                            [&] { drop_schemas(connection, {rest.text(i, 2)}); });
    }
    return static_cast<std::size_t>(rest.rows());
}

} // namespace

/* One trigger at a time, because DROP TRIGGER locks its table in ACCESS EXCLUSIVE mode. DROP SCHEMA
 * CASCADE would drop them as well, but with the locks of all tables until its end. The triggers are
 * those of the shards' tables: a trigger of another role can call leaving() from a table of its
 * own, a temporary one, too. It goes with the schema, and so does that of a table that has left its
 * shard.
 *
 * The schema goes last, and the slot before it: with the record, the slot's name is gone, and the
 * command could not be repeated. */
void SplitCommand::remove_fence(Connection& connection)
{
    const std::vector<std::string> tables = texts_of(connection.query(R"(
        SELECT c.oid::regclass FROM pg_trigger JOIN pg_class AS c ON c.oid = tgrelid
        JOIN pg_namespace AS n ON n.oid = relnamespace JOIN snowflake_split.shards ON schema_name = nspname
        WHERE tgname = 'snowflake_split' AND relkind IN ('r', 'p') ORDER BY 1)"));
    Progress progress("triggers of " + connection.server(), tables.size());
    for (const std::string& table : tables) {
        stop_if_interrupted();
        lock_and_run_naming(connection, Clock::now() + timeouts::kPatientLock,
                            [&] { connection.run("DROP TRIGGER snowflake_split ON " + table); });
        progress.step();
    }
    drop_slot(connection);
    lock_and_run_naming(connection, Clock::now() + timeouts::kPatientLock,
                        [&] { drop_schemas(connection, {kSplitSchema}); });
}

/* Statistics show that rows were written, but never that none were: sessions report them late, and
 * a crash discards them. The replay of WAL counts no rows, so these were written after the
 * promotion. */
std::string SplitCommand::tell_of_writes() const
{
    if (servers_.standby == nullptr)
        return "";
    const Result written = servers_.standby->query(R"(
        SELECT coalesce(sum(n_tup_ins + n_tup_upd + n_tup_del), 0)::bigint
        FROM pg_stat_user_tables JOIN snowflake_split.shards ON schema_name = schemaname WHERE leaves)");
    const std::int64_t rows = written.number(0, 0);
    if (rows == 0)
        return "\nThe statistics of that server count no writes to these shards. They lack recent "
               "ones, and those from before a crash. Look at the tables before you open "
               "the shards on the old server: its rows are those of the promotion.";
    return "\n" + count_of(static_cast<std::size_t>(rows), "row") +
           " of its shards have been written there, which the old server does not have. After "
           "--complete, move leads a shard back.";
}

/* Ends a split before the promotion. See open_standby() for why this is safe. The fence goes first,
 * because nobody can write until then; then PgBouncer, whose clients would meet it otherwise.
 * remove_fence() comes last, because --abort can be repeated only while the record is there. */
int SplitCommand::abort()
{
    const auto now = state();
    if (!now)
        throw Failure("there is no split of " + old_.server() + " to be aborted");
    require_same_servers(*now);
    if (now->step == SplitStep::split)
        throw Failure("the shards are open on " + now->new_server.text() + ", which was promoted" +
                      tell_of_writes());
    if (now->step == SplitStep::promoting) {
        /* The standby must be reached only here: nobody else knows if it was promoted. */
        Connection& standby = servers_.reached();
        if (!is_in_recovery(standby))
            throw Failure(standby.server() + " was promoted\nHINT:  " +
                          command_of(*now, "--resume") + " finishes the split.");
        if (start_of(standby) == now->standby_start)
            throw Failure(
                "the promotion of " + standby.server() +
                " was requested, and may still come\nHINT:  " + command_of(*now, "--resume") +
                " finishes the split. To go back, start the standby again, and give --abort then.");
    }
    cutover_.remedy = "snowflake-shard split ... --abort goes on";
    require_home(*now);
    lower_fence(old_, deadline_of_opening());
    cutover_.let_go();
    /* This comes before the record is removed: if it fails, --abort can be repeated. */
    if (servers_.standby != nullptr && !is_in_recovery(*servers_.standby))
        warn(servers_.standby->server() + " was promoted by somebody else, and stays read-only: it "
                                          "would make the IDs of this server again");
    else if (servers_.standby != nullptr)
        make_writable(*servers_.standby);
    else
        warn("the standby cannot be reached. When it can: ALTER SYSTEM RESET "
             "default_transaction_read_only; SELECT pg_reload_conf();");
    remove_fence(old_);
    /* The record is removed all the same, because the shards are open. So --abort does not go on:
     * the error names the aliases, and the user resumes them. */
    cutover_.end_abort("the split");
    return end("aborted");
}

/* A server that has no rest any more is passed over. Rows are dropped here for good, so the record
 * of either server must say that it is one end of the same split: with another server in the place
 * of one, a shard could lose the only rows that it has. */
int SplitCommand::complete()
{
    Connection& standby = servers_.reached();
    const auto there = read_split(standby);
    const auto here = state();
    if (!here && !there) {
        warn("neither server has a rest of a split");
        return kDone;
    }
    if (here)
        require_same_servers(*here);
    if (here && here->is_under_way())
        throw Failure("the split is not at its end\nHINT:  " + next_commands(*here));
    if (there && (!there->is_new || !is_address_of(there->old_server, old_) ||
                  (here && here->id != there->id)))
        throw Failure("the servers are not those of one split");
    note_interrupts();
    for (Connection* connection : {&old_, &standby}) {
        const std::size_t dropped = drop_closed_shards(*connection);
        warn(connection->server() + ": " + count_of(dropped, "shard") + " dropped");
        /* The fence goes after the schemas: until they are dropped, their triggers keep clients
         * from writing there. */
        if (read_split(*connection))
            remove_fence(*connection);
    }
    return kDone;
}
