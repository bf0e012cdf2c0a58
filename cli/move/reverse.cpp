#include "move/reverse.h"

#include "base/output.h"
#include "cutover/waiting.h"
#include "fleet/failover.h"
#include "move/fingerprint.h"
#include "move/obstacles.h"
#include "move/replication.h"
#include "move/rights.h"
#include "move/run.h"
#include "move/state.h"
#include "replication/keys.h"
#include "postgres/settings.h"

void prepare_reverse(Connection& target, const Move& move)
{
    const Move back = opposite(move);
    warn("target: publication and slot of reverse replication");
    /* Nobody has subscribed to those that a killed command has left. They are made anew: a table
     * can have been made since, and a slot of this name can be of anybody. */
    const bool is_left = find_publication(target, back).is_own();
    target.run(is_left ? "BEGIN; DROP PUBLICATION " + back.name : "BEGIN");
    make_fingerprint(target, back);
    make_publication(target, back);
    target.run("COMMIT");
    drop_unread_slot(target, back);
    make_slot(target, back.slot);
}

namespace
{

/* The end of the wait is no error: the shard is open on the target, and the worker tries again for
 * ever. */
void await_reader(Connection& target, const Move& back, Clock::time_point deadline)
{
    for (Pause pause; !is_read(target, back.slot); pause())
        if (Clock::now() > deadline)
            return warn("the source does not follow yet; its log says why");
}

/* Runs in a transaction of the caller. Returns why the source cannot follow any more; else nothing.
 */
std::string subscribe(Servers& servers, const Move& back, const std::string& publisher)
{
    auto& [source, target] = servers;
    hide_statements(source);
    source.run(
        /* The source has the rows (copy_data). The worker must not run before its position is set
         * (enabled). */
        subscription_sql(source, back.name, back.name, publisher,
                         "slot_name = '" + back.slot + "', copy_data = false, enabled = false" +
                             failover_option(source, target)));
    give_to_worker(source, source, back);
    if (const std::string table = find_foreign_table(source, back); !table.empty())
        return "the publication on " + target.server() + " has table " + table +
               ", which is not of the shard";
    if (has_found_publication(source, back))
        return "";
    if (!find_publication(target, back).is_there)
        return "publication " + back.name + " on " + target.server() + " is gone";
    throw Failure("from " + source.server() +
                  ", the connection string of the target leads to a server that is not the target: "
                  "it has no publication " +
                  back.name + ". Give another --target");
}

} // namespace

void try_reverse(Servers& servers, const Move& move, const std::string& publisher)
{
    find_obstacles_of_follower(servers, move, publisher).raise_first();
    servers.source.run("BEGIN");
    const std::string problem = subscribe(servers, opposite(move), publisher);
    servers.source.rollback();
    if (!problem.empty())
        throw Failure(problem);
}

namespace
{

/* The comparison is repeated after note_definition(): if the fingerprint is still the one of the
 * opening, the noted definition is that of the opening, too, which is the source's. It is done
 * before, because pg_dump may fail on an object that was made since. */
std::string find_problem(Context& context, const Move& back)
{
    auto& [source, target] = context.servers;
    std::string changed = "the definition of the shard has been changed on " + target.server();
    if (has_changed(target, back))
        return changed;
    note_definition(target, back, archive_of(target, back));
    if (has_changed(target, back))
        return changed;
    if (const Obstacles untrusted = find_obstacles_of_workers(source, source, back.shards);
        !untrusted.empty())
        return untrusted.front().server + ": " + untrusted.front().problem;
    /* keep_routing() keeps passwords out of the log by SET LOCAL, so it needs a transaction. */
    target.run("BEGIN");
    keep_routing(target, back.name, context.cutover.routers.routing());
    target.run("COMMIT");
    source.run("BEGIN");
    std::string problem = subscribe(context.servers, back, context.target_dsn);
    if (problem.empty())
        source.run(
            "COMMIT"); /* with the statement it would be logged after its settings have ended */
    else
        source.rollback();
    return problem;
}

} // namespace

/* A command that was killed here has left it. */
void steps::drop_left_back(Context& context)
{
    ::drop_subscription(context.servers.source, opposite(context.move),
                        context.cutover.limits.deadline());
}

/* The triggers become plain ones before the worker runs: a trigger that is ENABLE ALWAYS would stop
 * a TRUNCATE of the apply worker. */
void steps::subscribe_back(Context& context)
{
    Connection& source = context.servers.source;
    const Limits& limits = context.cutover.limits;
    const Move back = opposite(context.move);
    warn("source: subscription of reverse replication");
    context.problem = find_problem(context, back);
    context.wish.gives_up_reverse = !context.problem.empty();
    if (context.wish.gives_up_reverse)
        return;
    for (const std::string& statement : missing_triggers(source, back.fence(), false))
        lock_and_run(source, limits.deadline(), [&] { source.run(statement); });
    lock_and_run(source, limits.deadline(), [&] { check_replicated_rows(source, back.shards); });
}

/* The changes that the target has received from the source must not be sent back. */
void steps::advance_origin(Context& context)
{
    const Move back = opposite(context.move);
    begin_at(context.servers.source, back.name,
             context.servers.target.query(back.sql("SELECT at FROM @move@.noted")).text(0, 0));
}

/* Until its COMMIT the source is fenced and the target open, and --resume comes here. */
void steps::enable_back(Context& context)
{
    auto& [source, target] = context.servers;
    const Move back = opposite(context.move);
    source.run("BEGIN");
    write_reverse(source, back, ::Step::ready);
    Following(source, target, back.name).note();
    source.run(back.sql("ALTER SUBSCRIPTION @move@ ENABLE; COMMIT"));
}

void steps::finish_reverse(Context& context)
{
    auto& [source, target] = context.servers;
    ::finish_reverse(target, source, context.move);
    await_reader(target, opposite(context.move), context.cutover.limits.deadline());
}

/* The source commits first, so its state shows which steps are left. */
void finish_reverse(Connection& target, Connection& source, const Move& move)
{
    if (phase_of(read_state(source, move), read_state(target, move)) == Phase::turning)
        write_reverse(target, move, Step::prepared);
}
