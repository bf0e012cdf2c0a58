#include "move/command.h"

#include <thread>

#include "base/interrupt.h"
#include "base/output.h"
#include "cutover/dependents.h"
#include "cutover/sequences.h"
#include "cutover/standby.h"
#include "cutover/waiting.h"
#include "move/fence.h"
#include "move/fingerprint.h"
#include "move/run.h"
#include "postgres/settings.h"
#include "postgres/skipped.h"

namespace
{

/* Tells once, for a Watch of a statement that must not be given up. */
std::function<void()> tell_once_at(const Connection& target, Clock::time_point deadline)
{
    return [&target, deadline, tell = tell_of_standby(target), is_told = false]() mutable {
        if (Clock::now() < deadline)
            return;
        tell();
        if (is_told)
            return;
        is_told = true;
        warn("target: the COMMIT that opens the shard is under way, and " + target.server() +
             " does not answer. Nobody can write to the shard before it does.");
    };
}

/* A statement may have been given up there, and hold locks until it ends. The source is open, so
 * Ctrl-C may end this. */
void await_answer(Connection& connection)
{
    const auto start = Clock::now();
    const Watch watch(connection, [&, is_told = false]() mutable {
        stop_if_interrupted();
        if (!is_told && milliseconds_since(start) > 1000)
            warn("target: waiting until " + connection.server() + " answers");
        is_told = is_told || milliseconds_since(start) > 1000;
    });
    connection.settle();
    connection.rollback();
}

void await_marker(Connection& target, const Move& move, const std::string& marker,
                  Clock::time_point deadline)
{
    warn("target: waiting for the last write");
    const std::string sql = move.sql("SELECT FROM @move@.marker WHERE id = $1::uuid");
    /* The sleep is short, because clients cannot write meanwhile. */
    while (target.query(sql, {marker}).rows() == 0) {
        if (Clock::now() > deadline)
            throw Late("the last write did not come in time");
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

/* THE POINT OF NO RETURN is the commit of this transaction. It is called only when the marker of
 * the fence that stands on the source is here.
 *
 * No acknowledged write is lost: the marker was sent when every transaction that the fence does not
 * stop had ended, so each write was committed before the marker, or fails. The slot sends
 * transactions in the order of their commits, and the subscription commits them in that order, also
 * with parallel workers (all tables are 'r'), so every write committed before the marker is here.
 * No ID comes twice: the fence waited for every transaction that had drawn from a sequence, and
 * left nothing to be drawn. The marker carries the positions, so those it handed out are below.
 *
 * A kill at this point:
 * - of the target: the commit is on its disk or is not. With it is everything that it relies on,
 *   because the worker's transactions and the positions stand before it in the WAL. If it is there,
 *   the target is open and the source is closed; else both are closed, and --resume comes here
 *   again, or --abort lifts the fence.
 * - of the source: the fence was on its disk before the walsender sent the marker, which it reads
 *   from the flushed WAL. It stands again after the restart.
 * - of the command: its backend on the target commits or does not. The next command waits for the
 *   lock of that backend, and reads the target's state under it before it does anything else.
 *
 * A server that hangs: until the COMMIT is sent, the target cannot open, whenever its backend goes
 * on: the backend rolls back, or waits for the next statement. So a statement that is late is given
 * up, and the fence is lifted. Once the COMMIT is sent, it is not known whether the target is open
 * before the answer comes. The fence stays, and the command waits without a deadline: no other
 * command could do anything before that backend has ended, and clients are led to the target as
 * soon as it answers.
 *
 * So both are never open: the target opens only here, while the fence stands. The fence is lifted
 * only by a command that has read under the target's lock that it is not open, and has not sent
 * this COMMIT since. No other command can have sent it then: each takes the locks of both servers
 * first, and the session that lifts the fence holds the source's. */
void open_target(Connection& target, const Move& move, const FenceTry& fence,
                 Clock::time_point deadline, bool is_reversible, bool& is_final)
{
    warn("target: open");
    if (is_reversible)
        note_position(target, opposite(move)); /* later WAL is of clients */
    /* Their files are new in this transaction, and so these values are part of it. */
    target.query(move.sql(R"(
            SELECT setval(sequence::regclass, last_value, is_called)
            FROM @move@.marker, jsonb_to_recordset(positions)
                 AS p (sequence text, last_value bigint, is_called boolean)
            WHERE id = $1::uuid)"),
                 {fence.marker});
    write_step(target, move, Step::open);
    const Watch of_commit(target, tell_once_at(target, deadline));
    is_final = true;
    target.run("COMMIT");
}

/* Begins that transaction, while clients write to the source: ALTER SEQUENCE takes milliseconds for
 * each sequence, because it makes a new file. Nobody sees any of it before the COMMIT. Until then
 * it holds locks of the sequences, which no other session of this command needs. The apply worker
 * needs them for a TRUNCATE ... RESTART IDENTITY alone: the marker does not come then, and the next
 * try waits for the worker first. READ COMMITTED, so each statement sees the rows that the worker
 * has committed by then, the marker, too. The positions in the WAL are read after the marker has
 * come. */
void begin_opening(Connection& target, const Move& move, Clock::time_point deadline)
{
    const Watch watch(target, late_at(target, deadline));
    lock_and_begin(target, deadline,
                   [&] { target.query(move.sql("SELECT @move@.open_marked()")); });
}

/* The fence is raised here, and the target opened, by the deadline. */
void cut_over_by(Clock::time_point deadline, Servers& servers, const Move& move,
                 Connection& snapshot, Connection& keeper, Cutover& cutover, FenceTry& fence,
                 bool is_reversible)
{
    auto& [source, target] = servers;
    const Watch on_source(source, late_at(source, deadline));
    const Watch on_target(target, late_at(target, deadline));
    const Watch on_snapshot(snapshot, late_at(snapshot, deadline));
    const Watch on_keeper(keeper, late_at(keeper, deadline));
    /* The pause comes before the fence: clients wait in PgBouncer, and do not get its error. */
    cutover.routers.pause(deadline);
    /* A marker is there if a killed command has sent it. Then the fence stands. */
    if (fence.marker.empty()) {
        /* The pause may have waited for a transaction that changed a table. The target would not
         * take its rows, and the last write would not come. */
        require_no_change(source, move);
        warn("source: fence");
        raise_fence(source, keeper, move, target.server(), deadline, fence);
    }
    await_marker(target, move, fence.marker, deadline);
    await_standbys(source, deadline);
    /* BEGIN takes no snapshot, the SELECT does. All rows of the source are here by now, and no
     * client has written here yet. */
    snapshot.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SELECT");
    /* The fence does not stop ALTER TABLE or GRANT, so this comes as late as possible. A trigger
     * can have been disabled since a killed command has sent the marker. */
    require_triggers(source, move.fence());
    require_no_change(source, move);
    find_skipped(target, move.name).raise_first();
    open_target(target, move, fence, deadline, is_reversible, cutover.is_final);
}

/* One try. Returns for how many milliseconds writes were blocked.
 *
 * The definition is compared before the fence, because after it there is no time for pg_dump.
 * pg_dump runs only if the fingerprint has changed since the copy, and all rows are compared then.
 * note_fingerprint() comes first, because a change during the dump makes another one. After the
 * fence it is computed once. */
std::int64_t try_cutover(Servers& servers, const Move& move, Connection& snapshot,
                         Connection& keeper, Cutover& cutover)
{
    auto& [source, target] = servers;
    const Limits& limits = cutover.limits;
    const MoveState state = require_state(source, move);
    if (state.step != Step::fenced) {
        warn("source: triggers of the fence");
        make_triggers(source, move.fence(), limits.timeout);
        note_fingerprint(source, move);
        /* A partition in another schema can have come during the copy. A later one changes the
         * fingerprint, but not the dumps. */
        require_no_dependents(source, move.shards);
        /* A change can have come since the comparison. */
        Laps laps;
        if (may_differ(servers, move))
            compare_before_cutover(servers, move, SIZE_MAX, laps);
        /* One that is far behind would be awaited while writes are blocked. */
        await_standbys(source, limits.deadline());
    }
    /* A change that comes after it, even while the target is closed, is one for reverse
     * replication, too. */
    if (state.is_reversible)
        note_fingerprint(target, opposite(move));
    FenceTry fence = {state.step == Step::fenced, state.marker, Clock::now()};
    if (fence.stands)
        fence.start -= time_since_closing(source, move);
    begin_opening(target, move, limits.deadline());
    cut_over_by(limits.deadline(), servers, move, snapshot, keeper, cutover, fence,
                state.is_reversible);
    const std::int64_t blocked = milliseconds_since(fence.start);
    warn("writes were blocked for " + std::to_string(blocked) + " ms");
    return blocked;
}

} // namespace

/* After the COMMIT was sent, its Watch throws no Late, so the fence may be lowered for it. */
std::int64_t cut_over(Servers& servers, const Move& move, Connection& snapshot, Cutover& cutover)
{
    Connection& source = servers.source;
    Connection& target = servers.target;
    const Limits& limits = cutover.limits;
    /* Connected now, so that clients are not blocked for it. */
    Connection keeper(source.dsn_of_server());
    std::int64_t blocked = 0;
    CutoverSteps steps;
    steps.close = [&] { blocked = try_cutover(servers, move, snapshot, keeper, cutover); };
    steps.open_again = [&] { open_again(servers, move, cutover); };
    steps.catch_up = [&] {
        await_answer(target);
        await_answer(snapshot);
        await_lag(servers, move, limits.max_lag);
    };
    steps.opened = "the source is open again";
    steps.unknown = "It is not known whether the shard is open on " + target.server() +
                    ". Nobody can write to it before --resume.";
    withstand_settings(snapshot);
    lock_keeper(keeper, move.fence());
    cutover.attempt(steps);
    return blocked;
}
