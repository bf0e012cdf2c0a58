/* snowflake-shard move, the switch: the fence on the source, and the opening of the target. */

#include "move.h"
#include "move_switch.h"
#include "output.h"

namespace
{

constexpr int kTries = 3;

/* A table that was made during the move has not been copied. */
void require_published_tables(Move& move)
{
    const Result tables = move.source.query(
        "SELECT c.oid::regclass FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n "
        "ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relkind = 'r' AND NOT EXISTS ("
        "SELECT FROM pg_catalog.pg_publication_rel AS r JOIN pg_catalog.pg_publication AS p ON "
        "p.oid = r.prpubid WHERE r.prrelid = c.oid AND p.pubname = $2)",
        {move.shard.schema, move.name});
    if (tables.rows() > 0)
        throw Failure("table " + tables.text(0, 0) +
                      " was made during the move, which does not "
                      "carry it. Start anew: --abort");
}

/* Returns the marker, which is written in the same transaction. */
std::string raise_fence(Move& move, Clock::time_point deadline, Clock::time_point& start)
{
    std::string marker;
    const std::string problem = "shard " + std::to_string(move.shard.number) + ", schema " +
                                move.shard.schema + ", has moved";
    lock_and_run(move.source, deadline, [&] {
        start = Clock::now();
        const Result positions =
            move.source.query("SELECT " + move.name + ".close('ALWAYS', $1, $2)",
                              {problem, "It is at " + move.target.server() + " now."});
        require_published_tables(move);
        marker = move.source
                     .query("INSERT INTO " + move.name +
                                ".marker VALUES (pg_catalog.gen_random_uuid(), $1::jsonb) "
                                "RETURNING id",
                            {positions.text(0, 0)})
                     .text(0, 0);
        move.source.query("UPDATE " + move.name +
                              ".state SET step = 'fenced', is_open = false, marker = $1::uuid",
                          {marker});
    });
    return marker;
}

bool await_marker(Move& move, const std::string& marker, Clock::time_point deadline)
{
    const std::string sql = "SELECT FROM " + move.name + ".marker WHERE id = $1::uuid";
    while (move.target.query(sql, {marker}).rows() == 0) {
        if (Clock::now() > deadline)
            return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
}

/* THE POINT OF NO RETURN is the commit of this transaction. It is called only when the marker of
 * the fence that stands on the source is here.
 *
 * No acknowledged write is lost: the fence's transaction locked every table against writing, so
 * each write committed before it, or fails. The slot sends transactions in the order of their
 * commits, and a single worker applies them (all tables are 'r'), so what committed before the
 * marker is here. No ID comes twice: the fence waited for every transaction that had drawn from a
 * sequence, and left nothing to be drawn. The marker carries the positions, so those it handed out
 * are below.
 *
 * A kill at this point:
 * - of the target: the commit is on its disk or is not. With it is everything that it relies on,
 *   because the worker's transactions and the positions stand before it in the WAL. If it is there,
 *   the target is open and the source is closed; else both are closed, and --resume comes here
 *   again, or --abort lifts the fence.
 * - of the source: the fence was on its disk before the walsender sent the marker, which it reads
 *   from the flushed WAL. It stands again after the restart.
 * - of the command: as its backend on the target ends. The next command waits for the lock of that
 *   backend, and asks the target's state under it before it does anything else.
 *
 * So never are both open: the target opens only here, with the fence up; the fence is lifted only
 * by one that holds the target's lock and has seen that it is not open. */
void open_target(Move& move, const std::string& marker, Clock::time_point deadline)
{
    lock_and_run(move.target, deadline, [&] {
        move.target.query("SELECT " + move.name + ".reopen()");
        /* reopen() gave the sequences new files, so these values are part of the transaction. */
        move.target.query("SELECT pg_catalog.setval(p.sequence::regclass, p.last_value, "
                          "p.is_called) FROM " +
                              move.name +
                              ".marker AS m CROSS JOIN LATERAL "
                              "pg_catalog.jsonb_to_recordset(m.positions) "
                              "AS p (sequence text, last_value bigint, is_called boolean) "
                              "WHERE m.id = $1::uuid",
                          {marker});
        move.target.query("SELECT snowflake_internal.claim_shard($1::integer, $2::name)",
                          {std::to_string(move.shard.number), move.shard.schema});
        move.target.run("UPDATE " + move.name + ".state SET step = 'open', is_open = true");
    });
}

/* False, and a message, if it did not succeed in time; the source is open then. */
bool try_switch(Move& move, PgBouncer& bouncer, Connection& snapshot)
{
    const auto deadline = move.deadline();
    auto start = Clock::now();
    hold_interrupts();
    try {
        if (!bouncer.pause(deadline)) {
            warn("PgBouncer's clients did not end their transactions in time");
            return false;
        }
        std::string marker = move.source_state()->marker;
        if (marker.empty()) {
            warn("source: fence");
            try {
                marker = raise_fence(move, deadline, start);
            } catch (...) {
                bouncer.resume();
                throw;
            }
        }
        warn("target: waiting for the last write");
        if (await_marker(move, marker, deadline)) {
            snapshot.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SELECT");
            warn("target: open");
            open_target(move, marker, deadline);
            warn("writes were blocked for " + std::to_string(milliseconds_since(start)) + " ms");
            return true;
        }
        warn("the last write did not come in time");
    } catch (const ServerError& error) {
        if (!is_lock_error(error))
            throw;
        warn(error.what());
    }
    snapshot.rollback();
    lower_fence(move);
    bouncer.resume();
    return false;
}

} // namespace

void lower_fence(Move& move)
{
    if (move.source_state()->step != "fenced")
        return;
    lock_and_run(move.source, move.deadline(), [&] {
        move.source.query("SELECT " + move.name + ".reopen()");
        move.source.run("UPDATE " + move.name +
                        ".state SET step = 'prepared', is_open = true, marker = NULL");
    });
}

void switch_over(Move& move, PgBouncer& bouncer, Connection& snapshot)
{
    for (int left = kTries; !try_switch(move, bouncer, snapshot); left--) {
        heed_interrupts();
        warn("the source is open again");
        if (left == 1)
            throw Failure("the switch did not succeed within --timeout, " +
                          count_of(kTries, "time") + " tried");
        std::this_thread::sleep_for(std::chrono::seconds(1));
        await_lag(move);
    }
}

void reroute(Move& move, PgBouncer& bouncer)
{
    bouncer.lead_to(move.target);
    bouncer.resume();
}

void drop_state(Move& move, Connection& connection)
{
    const Result tables = connection.query(
        "SELECT t.tgrelid::regclass FROM pg_catalog.pg_trigger AS t JOIN pg_catalog.pg_proc AS p "
        "ON p.oid = t.tgfoid JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace "
        "WHERE n.nspname = $1 ORDER BY 1",
        {move.name});
    for (int i = 0; i < tables.rows(); i++)
        lock_and_run(connection, move.deadline(), [&] {
            connection.run("DROP TRIGGER snowflake_move ON " + tables.text(i, 0));
        });
    connection.run("DROP SCHEMA IF EXISTS " + move.name + " CASCADE");
}

void clean_up(Move& move)
{
    warn("both: subscription, slot and publication");
    drop_subscription(move);
    drop_slot_and_publication(move);
    move.source.run("UPDATE " + move.name + ".state SET step = 'moved'");
    drop_state(move, move.target);
}
