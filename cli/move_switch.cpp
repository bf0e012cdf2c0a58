/* snowflake-shard move, the switch: the fence on the source, and the opening of the target. */

#include <thread>

#include "move.h"
#include "output.h"

namespace
{

constexpr int kTries = 3;
const std::string kDeadlock = "40P01";

/* A table that was made during the move has not been copied. */
void require_published_tables(Move& move)
{
    const Result tables = move.source.query(R"(
        SELECT oid::regclass FROM pg_class
        WHERE relnamespace = $1::regnamespace AND relkind = 'r' AND oid NOT IN (
            SELECT prrelid FROM pg_publication_rel JOIN pg_publication AS p ON p.oid = prpubid
            WHERE pubname = $2))",
                                            {move.shard.quoted, move.name});
    if (tables.rows() > 0)
        throw Failure("table " + tables.text(0, 0) +
                      " was made during the move, which does not carry it. Start anew: --abort");
}

/* Returns the marker, which is written in the same transaction. */
std::string raise_fence(Move& move, Clock::time_point deadline, Clock::time_point& start)
{
    std::string marker;
    lock_and_run(move.source, deadline, [&] {
        start = Clock::now();
        const Result positions = move.source.query(
            move.sql("SELECT @move@.close('ALWAYS', $1, $2)"),
            {move.title() + ", has moved", "It is at " + move.target.server() + " now."});
        require_published_tables(move);
        const Result written = move.source.query(
            move.sql(
                "INSERT INTO @move@.marker VALUES (gen_random_uuid(), $1::jsonb) RETURNING id"),
            {positions.text(0, 0)});
        marker = written.text(0, 0);
        move.source.query(
            move.sql("UPDATE @move@.state SET step = 'fenced', is_open = false, marker = $1::uuid"),
            {marker});
    });
    return marker;
}

void await_marker(Move& move, const std::string& marker, Clock::time_point deadline)
{
    warn("target: waiting for the last write");
    const std::string sql = move.sql("SELECT FROM @move@.marker WHERE id = $1::uuid");
    while (move.target.query(sql, {marker}).rows() == 0) {
        if (Clock::now() > deadline)
            throw Late("the last write did not come in time");
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

/* THE POINT OF NO RETURN is the commit of this transaction. It is called only when the marker of
 * the fence that stands on the source is here.
 *
 * No acknowledged write is lost: the fence's transaction locked every table against writing, so
 * each write committed before it, or fails. The slot sends transactions in the order of their
 * commits, and the subscription commits them in that order, also with parallel workers (all tables
 * are 'r'), so what committed before the marker is here. No ID comes twice: the fence waited for
 * every transaction that had drawn from a sequence, and left nothing to be drawn. The marker
 * carries the positions, so those it handed out are below.
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
 * So both are never open: the target opens only here, while the fence stands; the fence is lifted
 * only by a command that holds the target's lock and has seen that the target is not open. */
void open_target(Move& move, const std::string& marker, Clock::time_point deadline)
{
    warn("target: open");
    lock_and_run(move.target, deadline, [&] {
        move.target.query(move.sql("SELECT @move@.reopen()"));
        /* reopen() gave the sequences new files, so these values are part of the transaction. */
        move.target.query(move.sql(R"(
                SELECT setval(sequence::regclass, last_value, is_called)
                FROM @move@.marker, jsonb_to_recordset(positions)
                     AS p (sequence text, last_value bigint, is_called boolean)
                WHERE id = $1::uuid)"),
                          {marker});
        move.target.query("SELECT snowflake_internal.claim_shard($1::integer, $2)",
                          {std::to_string(move.shard.number), move.shard.schema});
        move.target.run(move.sql("UPDATE @move@.state SET step = 'open', is_open = true"));
    });
}

/* False, and a message, if it did not succeed in time; the source is open then. */
bool try_switch(Move& move)
{
    const auto deadline = move.deadline();
    auto start = Clock::now();
    std::string marker = move.source_state()->marker;
    try {
        move.bouncer.pause(deadline);
        if (marker.empty()) {
            warn("source: fence");
            marker = raise_fence(move, deadline, start);
        }
        await_marker(move, marker, deadline);
        move.snapshot->run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SELECT");
        open_target(move, marker, deadline);
        warn("writes were blocked for " + std::to_string(milliseconds_since(start)) + " ms");
        return true;
    } catch (const Late& late) {
        warn(late.what());
    } catch (...) {
        if (marker.empty())
            move.bouncer.resume();
        throw;
    }
    move.snapshot->rollback();
    lower_fence(move);
    move.bouncer.resume();
    return false;
}

} // namespace

void lock_and_run(Connection& connection, Clock::time_point deadline,
                  const std::function<void()>& work)
{
    for (auto wait = std::chrono::milliseconds(50);; wait *= 2) {
        try {
            connection.run("BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = " +
                           std::to_string(wait.count()));
            work();
            connection.run("COMMIT");
            return;
        } catch (const std::exception& error) {
            connection.rollback();
            const auto* refusal = dynamic_cast<const ServerError*>(&error);
            if (refusal == nullptr ||
                (refusal->sqlstate != kLockTimeout && refusal->sqlstate != kDeadlock))
                throw;
            if (Clock::now() + wait > deadline)
                throw Late(error.what());
        }
        std::this_thread::sleep_for(wait);
    }
}

void lower_fence(Move& move)
{
    if (move.source_state()->step != "fenced")
        return;
    lock_and_run(move.source, move.deadline(), [&] {
        move.source.run(move.sql(R"(
            SELECT @move@.reopen();
            UPDATE @move@.state SET step = 'prepared', is_open = true, marker = NULL)"));
    });
}

void switch_over(Move& move)
{
    move.snapshot.emplace(move.options.to);
    for (int left = kTries; !try_switch(move); left--) {
        warn("the source is open again");
        if (left == 1)
            throw Failure("the switch did not succeed within --timeout, " +
                          count_of(kTries, "time") + " tried");
        std::this_thread::sleep_for(std::chrono::seconds(1));
        await_lag(move);
    }
}

void drop_state(Move& move, Connection& connection)
{
    const Result tables = connection.query(R"(
        SELECT tgrelid::regclass FROM pg_trigger JOIN pg_proc AS p ON p.oid = tgfoid
        WHERE pronamespace = to_regnamespace($1) ORDER BY 1)",
                                           {move.name});
    for (const std::string& table : texts_of(tables)) /* one is locked at a time */
        lock_and_run(connection, move.deadline(),
                     [&] { connection.run("DROP TRIGGER snowflake_move ON " + table); });
    connection.run("DROP SCHEMA IF EXISTS " + move.name + " CASCADE");
}
