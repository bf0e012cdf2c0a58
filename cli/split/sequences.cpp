#include "split/fence.h"

#include "base/output.h"
#include "cutover/waiting.h"

namespace
{

/* setval() to the end of a sequence leaves no value to nextval(), and to snowflake_next_id() none
 * of any epoch, whatever snowflake.max_drift is. It costs a tenth of ALTER SEQUENCE, which makes a
 * new file, and it is one statement for hundreds of them. It is not rolled back, though. So the
 * position is committed by another session, while this one holds a lock that keeps everybody from
 * drawing: SET LOGGED takes one, and does nothing to a sequence that is logged. setval() comes
 * after that. ALTER SEQUENCE follows when clients write again. */

/* As many as fit into the lock table of a server with few connections. */
constexpr std::size_t kBatch = 500;

using Statement = std::function<void(const std::string& batch)>;

/* One transaction for each batch. None is flushed: the next commit of the caller flushes all, and a
 * crash before it leaves a prefix of them, from which a command goes on. The OIDs are the elements
 * of an array as text, {1,2}, and need no quotes. Without a sequence array_agg() is NULL, and
 * unnest() has no row. */
void run_in_batches(Connection& connection, bool leave, Clock::time_point deadline,
                    const Statement& run)
{
    const std::vector<std::string> all = texts_of(connection.query(
        "SELECT unnest(snowflake_split.sequences_of($1)) ORDER BY 1", {leave ? "true" : "false"}));
    for (std::size_t i = 0; i < all.size(); i += kBatch) {
        const std::size_t end = std::min(i + kBatch, all.size());
        std::string batch = all[i];
        for (std::size_t k = i + 1; k < end; k++)
            batch += "," + all[k];
        lock_and_run(connection, deadline, [&] {
            connection.run("SET LOCAL synchronous_commit = off");
            run("{" + batch + "}");
        });
    }
}

} // namespace

/* By stored_value(), which returns NULL for a sequence that somebody has locked: to read ahead must
 * neither wait nor fail. */
void read_ahead(Connection& connection)
{
    connection.query(
        "SELECT count(*) FROM (SELECT v.* FROM snowflake_split.sequences AS s CROSS "
        "JOIN LATERAL snowflake_internal.stored_value(s.sequence) AS v OFFSET 0) AS a");
}

/* The keeper's commit is in the WAL before the setval() of its sequences, so a server or a standby
 * that has the setval() has the position, too. That also holds without a flush, because WAL is lost
 * from its end only. The keeper gets OIDs and numbers and locks no sequence, so it does not wait
 * for the lock of the other session. */
void close_sequences(Connection& old, Connection& keeper, Clock::time_point deadline)
{
    keeper.run("SET synchronous_commit = off");
    run_in_batches(old, true, deadline, [&](const std::string& batch) {
        old.query("SELECT snowflake_split.lock_sequences($1)", {batch});
        const Result read = old.query("SELECT * FROM snowflake_split.read_sequences($1)", {batch});
        keeper.query(
            "SELECT snowflake_split.keep_positions($1, $2, $3, $4, $5)",
            {read.text(0, 0), read.text(0, 1), read.text(0, 2), read.text(0, 3), read.text(0, 4)});
        old.query("SELECT snowflake_split.end_sequences($1)", {batch});
    });
}

/* Without a keeper: their positions go on, and are kept, on the old server. This copy is never
 * drawn again. */
void end_sequences(Connection& standby, Clock::time_point deadline)
{
    run_in_batches(standby, false, deadline, [&](const std::string& batch) {
        standby.query("SELECT snowflake_split.end_sequences($1)", {batch});
    });
}

void release_sequences(Connection& connection, Clock::time_point deadline)
{
    run_in_batches(connection, true, deadline, [&](const std::string& batch) {
        connection.query("SELECT snowflake_split.release_sequences($1)", {batch});
    });
}

/* ALTER SEQUENCE writes a new file, so it comes when no client waits. One sequence at a time:
 * others that read it wait for one short transaction. Those that are marked are passed over by a
 * repeated command. */
void mark_closed_sequences(Connection& connection)
{
    const std::vector<std::string> sequences = texts_of(connection.query(R"(
        SELECT q.sequence::regclass FROM snowflake_split.sequences AS q, snowflake_split.state AS s
        WHERE q.leaves <> s.is_new AND NOT q.is_marked AND s.step = 'split' ORDER BY 1)"));
    Progress progress("closed sequences of " + connection.server(), sequences.size());
    for (const std::string& sequence : sequences) {
        lock_and_run(connection, Clock::now() + std::chrono::minutes(1), [&] {
            connection.run("SET LOCAL synchronous_commit = off");
            connection.query("SELECT snowflake_split.mark($1)", {sequence});
        });
        progress.step();
    }
}
