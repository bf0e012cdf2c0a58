#include "split/fence.h"

#include "cutover/sequences.h"
#include "cutover/standby.h"
#include "cutover/waiting.h"
#include "split/session.h"
#include "sql/sql.h"

void make_split(Connection& old, const Address& new_server, const std::vector<SplitShard>& shards)
{
    std::string rows;
    for (const SplitShard& shard : shards)
        rows += (rows.empty() ? "(" : ", (") + std::to_string(shard.number) + ", " +
                old.literal(shard.schema) + ", " + (shard.leaves ? "true)" : "false)");
    old.run(split_record_sql + ("INSERT INTO snowflake_split.shards VALUES " + rows));
    old.query("INSERT INTO snowflake_split.state (old_server, new_server) VALUES ($1, $2)",
              {old.address().text(), new_server.text()});
    make_fence(old, split_fence(), split_sql);
}

/* The standby has the same state by the WAL, so it is closed from the moment of its promotion: for
 * the shards that leave because their closing is older than the seal, and for those that stay
 * because the body of staying(), as close() writes it, lets write only where there is a replication
 * slot, which close() makes on the old server. It keeps no WAL. Slots are on disk, and are neither
 * replicated nor in a base backup. A timeline would not tell the two servers apart: a standby that
 * crashes when its promotion has removed standby.signal, and has not written the new timeline into
 * pg_control yet, starts as a primary on the old one. Direct draws there meet
 * default_transaction_read_only, see standby.h.
 *
 * Only writers of the shards that leave are waited for: those that stay go on, because the body of
 * staying() lets them write here. */
void close_shards(Connection& old, Clock::time_point deadline)
{
    lock_and_run(old, deadline, [&] { old.query("SELECT snowflake_split.close()"); });
    await_writers_before(old, split_fence(), deadline);
}

/* This commit is flushed, and with it those before that were not: synchronous_commit is on in this
 * session, see withstand_settings(). Each closing has a seal of its own, so that the standby cannot
 * be taken for one that has replayed this closing when it has only replayed an earlier one. */
std::string seal_shards(Connection& old, Clock::time_point deadline)
{
    std::string seal;
    lock_and_run(old, deadline, [&] {
        old.query("SELECT snowflake_split.note_closing(true)");
        seal = old.query("UPDATE snowflake_split.state SET step = 'sealed', "
                         "seal = gen_random_uuid() RETURNING seal")
                   .text(0, 0);
    });
    return seal;
}

/* setval() in lift() is not rolled back. So the step goes back first: a command that goes on from
 * there closes all sequences again, and reads how far they have been drawn. Sequences are released
 * in batches, and reopen() finds none left: it would take a lock for each in one transaction. The
 * triggers refuse rows until reopen() is committed, so a failure in between is harmless. */
void lower_fence(Connection& old, Clock::time_point deadline)
{
    const Watch watch(old, [late = late_at(old, deadline), tell = tell_of_standby(old)] {
        late();
        tell();
    });
    try {
        if (require_split(old).step == SplitStep::prepared)
            return;
        lock_and_run(old, deadline, [&] {
            old.run("UPDATE snowflake_split.state SET step = 'closed', seal = NULL");
        });
        release_sequences(old, split_fence(), deadline);
        lock_and_run(old, deadline, [&] { old.query("SELECT snowflake_split.reopen()"); });
    } catch (const Failure& error) {
        throw Failure("the shards that leave may still be closed on " + old.server() +
                      ", until --resume or --abort: " + std::string(error.what()));
    }
}

/* The slot is found by its name, so a slot that is gone is no error. A name of a slot has no
 * hyphens. */
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
    end_sequences(standby, split_fence(), false, deadline);
    release_sequences(standby, split_fence(), deadline);
    lock_and_run(standby, deadline, [&] { standby.query("SELECT snowflake_split.open_sides()"); });
}
