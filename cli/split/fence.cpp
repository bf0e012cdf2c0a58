#include "split/fence.h"

#include "base/interrupt.h"
#include "base/output.h"
#include "cutover/waiting.h"
#include "split/session.h"

namespace
{

/* There are two ways to make a row or an ID, and each has a part of the fence: triggers here, and
 * sequences.h.
 *
 * A statement on a table fires a trigger FOR EACH STATEMENT before a DEFAULT is computed. It is
 * made beforehand on every table, and ENABLE ALWAYS, so that it fires in a replica session, too.
 * Two functions, leaving() and staying(), do nothing while they wait: this costs a writer less than
 * one that reads a row of state, and nobody has to wait for old snapshots. close() replaces their
 * bodies. Why no statement misses that is said in move/fence.cpp.
 *
 * The standby has the same state by the WAL, so it is closed from the moment of its promotion: for
 * the shards that leave because their closing is older than the seal, and for those that stay
 * because the body of staying(), as close() writes it, lets write only where there is a replication
 * slot, which close() makes on the old server. It keeps no WAL. Slots are on disk, and are neither
 * replicated nor in a base backup. A timeline would not tell the two servers apart: a standby that
 * crashes when its promotion has removed standby.signal, and has not written the new timeline into
 * pg_control yet, starts as a primary on the old one. Direct draws there meet
 * default_transaction_read_only, see standby.h. */
const std::string kTables = R"(
    SELECT c.oid, s.leaves, format('shard %s, schema %s', s.shard, s.schema_name) AS title
    FROM snowflake_split.shards AS s
    JOIN pg_namespace AS n ON n.nspname = s.schema_name
    JOIN pg_class AS c ON c.relnamespace = n.oid
    WHERE c.relkind IN ('r', 'p'))";

/* Partitions, too: a statement fires the triggers FOR EACH STATEMENT of the table that it names,
 * and of no other. tgenabled = 'A' is ENABLE ALWAYS. pg_restore --disable-triggers ends with ENABLE
 * TRIGGER ALL, which makes it 'O': a session with session_replication_role = replica would pass. */
const std::string kTablesWithoutTrigger =
    "SELECT oid::regclass, leaves, title FROM (" + kTables + R"() AS t
     WHERE NOT EXISTS (SELECT FROM pg_trigger WHERE tgrelid = t.oid AND tgname = 'snowflake_split' AND tgenabled = 'A')
     ORDER BY t.oid)";

} // namespace

/* CREATE TRIGGER takes a SHARE ROW EXCLUSIVE lock: writers of the table wait for it, readers do
 * not. A table that has its trigger is not locked again, so a resumed command is quick. ONLY,
 * because each partition gets its trigger in a transaction of its own. */
void make_triggers(Connection& old)
{
    const Result tables = old.query(kTablesWithoutTrigger);
    Progress progress("triggers", static_cast<std::size_t>(tables.rows()));
    for (int i = 0; i < tables.rows(); i++, progress.step()) {
        stop_if_interrupted();
        const std::string table = tables.text(i, 0);
        const std::string statement =
            "CREATE OR REPLACE TRIGGER snowflake_split BEFORE INSERT OR UPDATE OR DELETE OR "
            "TRUNCATE ON " +
            table + " FOR EACH STATEMENT EXECUTE FUNCTION snowflake_split." +
            (tables.flag(i, 1) ? "leaving(" : "staying(") + old.literal(tables.text(i, 2)) +
            "); ALTER TABLE ONLY " + table + " ENABLE ALWAYS TRIGGER snowflake_split";
        try {
            lock_and_run(old, Clock::now() + std::chrono::minutes(1), [&] {
                /* close_shards() looks whether a crash has lost one. */
                old.run("SET LOCAL synchronous_commit = off; " + statement);
            });
        } catch (const Late&) {
            /* Not Late: no deadline of the cutover has passed, and somebody has to end that
             * transaction. */
            throw Failure("a transaction that does not end keeps table " + table +
                          " from getting its trigger\nHINT:  SELECT pid FROM pg_locks WHERE "
                          "relation = " +
                          old.literal(table) + "::regclass; shows who. Then --resume.");
        }
    }
}

/* Late, because the next try makes the trigger. */
void require_triggers(Connection& old)
{
    const Result tables = old.query(kTablesWithoutTrigger);
    if (tables.rows() > 0)
        throw Late("table " + tables.text(0, 0) + " was made just now, and nothing closes it");
}

/* Only writers of the shards that leave are waited for: those that stay go on, because the body of
 * staying() that close() writes lets them write here.
 *
 * The caller has looked for the triggers before it held clients. A table that an open transaction
 * had made was not visible to that look, and await_writers() does not know it either. The second
 * look finds it if that transaction has ended by then. */
void close_shards(Connection& old, Clock::time_point deadline)
{
    lock_and_run(old, deadline, [&] { old.query("SELECT snowflake_split.close()"); });
    await_writers(old, "SELECT oid FROM (" + kTables + ") AS t WHERE leaves", deadline);
    require_triggers(old);
}

/* This commit is flushed, and with it those before that were not: synchronous_commit is on in this
 * session, see withstand_settings(). Each closing has a seal of its own, so that the standby cannot
 * be taken for one that has replayed this closing when it has only replayed an earlier one. */
std::string seal_shards(Connection& old, Clock::time_point deadline)
{
    std::string seal;
    lock_and_run(old, deadline, [&] {
        seal = old.query("UPDATE snowflake_split.state SET step = 'sealed', "
                         "seal = gen_random_uuid() RETURNING seal")
                   .text(0, 0);
    });
    return seal;
}

/* setval() in reopen() is not rolled back. So the step goes back first: a command that goes on from
 * there closes all sequences again, and reads how far they have been drawn. Sequences are released
 * in batches, and reopen() finds none left: it would take a lock for each in one transaction. The
 * triggers refuse rows until reopen() is committed, so a failure in between is harmless. */
void lower_fence(Connection& old, Clock::time_point deadline)
{
    const Watch watch(old, late_at(old, deadline));
    try {
        if (require_split(old).step == SplitStep::prepared)
            return;
        lock_and_run(old, deadline, [&] {
            old.run("UPDATE snowflake_split.state SET step = 'closed', seal = NULL");
        });
        release_sequences(old, deadline);
        lock_and_run(old, deadline, [&] { old.query("SELECT snowflake_split.reopen()"); });
    } catch (const Failure& error) {
        throw Failure("the shards that leave may still be closed on " + old.server() +
                      ", until --resume or --abort: " + std::string(error.what()));
    }
}

/* By its name, so a slot that is gone is no error. A name of a slot has no hyphens. */
void drop_slot(Connection& connection)
{
    connection.query(R"(
        SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots, snowflake_split.state
        WHERE slot_name = 'snowflake_split_' || translate(id::text, '-', '_'))");
}

/* The sequences come first, in batches: a lock for each of thousands would fill the lock table,
 * when nothing can be undone any more. Until the last commit the triggers and
 * default_transaction_read_only keep clients out. */
void open_shards(Connection& standby, Clock::time_point deadline)
{
    end_sequences(standby, deadline);
    release_sequences(standby, deadline);
    lock_and_run(standby, deadline, [&] { open_sides(standby); });
}
