#include "move/reverse.h"

#include "base/output.h"
#include "cutover/waiting.h"
#include "fleet/failover.h"
#include "move/fingerprint.h"
#include "move/obstacles.h"
#include "move/replication.h"
#include "move/rights.h"
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

void discard_reverse(Connection& target, const Move& move, const Limits& limits)
{
    drop_slot_of(target, opposite(move), limits.deadline());
    drop_publication(target, opposite(move));
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

/* The changes that the target has received from the source must not be sent back. */
void enable_at(Servers& servers, const Move& back, const std::string& position)
{
    Connection& source = servers.source;
    begin_at(source, back.name, position);
    source.run("BEGIN");
    write_reverse(source, back, Step::ready);
    Following(source, servers.target, back.name).note();
    source.run(back.sql("ALTER SUBSCRIPTION @move@ ENABLE; COMMIT"));
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

/* The steps may run again after a kill: until enable_at() commits, the source is fenced and the
 * target open, and --resume comes here. The triggers become plain ones before the worker runs: a
 * trigger that is ENABLE ALWAYS would stop a TRUNCATE of the apply worker. */
std::string make_reverse(Servers& servers, const Move& move, const std::string& publisher,
                         const Routing& routing, const Limits& limits)
{
    auto& [source, target] = servers;
    const Move back = opposite(move);
    warn("source: subscription of reverse replication");
    if (!has_slot(target, back.slot))
        return "slot " + back.slot + " on " + target.server() + " has lost WAL, or is gone";
    /* The comparison is repeated after note_definition(): if the fingerprint is still the one of
     * the opening, the noted definition is that of the opening, too, which is the source's. It is
     * done before, because pg_dump may fail on an object that was made since. */
    std::string changed = "the definition of the shard has been changed on " + target.server();
    if (has_changed(target, back))
        return changed;
    note_definition(target, back, archive_of(target, back));
    if (has_changed(target, back))
        return changed;
    if (const Obstacles untrusted = find_obstacles_of_workers(source, source, move.shards);
        !untrusted.empty())
        return untrusted.front().server + ": " + untrusted.front().problem;
    /* keep_routing() keeps passwords out of the log by SET LOCAL, so it needs a transaction. */
    target.run("BEGIN");
    keep_routing(target, back.name, routing);
    target.run("COMMIT");
    drop_subscription(source, back, limits.deadline()); /* of a command that was killed here */
    source.run("BEGIN");
    if (std::string problem = subscribe(servers, back, publisher); !problem.empty()) {
        source.rollback();
        return problem;
    }
    source.run("COMMIT"); /* with the statement it would be logged after its settings have ended */
    for (const std::string& statement : missing_triggers(source, back.fence(), false))
        lock_and_run(source, limits.deadline(), [&] { servers.source.run(statement); });
    lock_and_run(source, limits.deadline(),
                 [&] { check_replicated_rows(servers.source, move.shards); });
    enable_at(servers, back, target.query(back.sql("SELECT at FROM @move@.noted")).text(0, 0));
    finish_reverse(target, source, move);
    await_reader(target, back, limits.deadline());
    return "";
}

/* The source commits first, so its state shows which steps are left. */
void finish_reverse(Connection& target, Connection& source, const Move& move)
{
    if (phase_of(read_state(source, move), read_state(target, move)) == Phase::turning)
        write_reverse(target, move, Step::prepared);
}
