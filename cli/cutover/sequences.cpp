#include "cutover/sequences.h"

#include <algorithm>

#include "base/output.h"
#include "base/timeouts.h"
#include "cutover/waiting.h"
#include "postgres/advisory.h"
#include "postgres/settings.h"

namespace
{

/* setval() to the end of a sequence leaves no value to nextval(), and to snowflake_next_id() none
 * of any epoch, whatever snowflake.max_drift is: end_sequences() treats the few others. It costs a
 * tenth of ALTER SEQUENCE, which makes a new file, and it is one statement for hundreds of them. It
 * is not rolled back, though. So the position is committed by another session, while this one holds
 * a lock that keeps everybody from drawing. setval() comes after that. ALTER SEQUENCE follows when
 * clients write again. Values that a session has cached (CACHE) are below the position, so they
 * come once. */

/* As many sequences fit into the lock table of a server with few connections. */
constexpr std::size_t kBatch = 500;

using Statement = std::function<void(const std::string& batch)>;

std::string text_of(bool flag)
{
    return flag ? "true" : "false";
}

/* Each batch is one transaction. None is flushed: the next commit of the caller flushes all, and a
 * crash before it leaves a prefix of them, from which a command continues. The OIDs are the
 * elements of an array as text, {1,2}, and need no quotes. Without a sequence array_agg() is NULL,
 * and unnest() has no row. */
void run_in_batches(Connection& connection, const Fence& fence, bool leave,
                    Clock::time_point deadline, const Statement& run)
{
    const std::vector<std::string> all = texts_of(connection.query(
        fence.sql("SELECT unnest(@record@.sequences_of($1)) ORDER BY 1"), {text_of(leave)}));
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

/* Reads by stored_value(), which returns NULL for a sequence that somebody has locked: reading
 * ahead must neither wait nor fail. */
void read_ahead(Connection& connection, const Fence& fence)
{
    connection.query(fence.sql(
        "SELECT count(*) FROM (SELECT v.* FROM @record@.relations AS r CROSS JOIN LATERAL "
        "snowflake_internal.stored_value(r.oid) AS v WHERE r.relkind = 'S' OFFSET 0) AS a"));
}

void lock_keeper(Connection& keeper, const Fence& fence)
{
    withstand_settings(keeper);
    lock_by_name(keeper, fence.record + ".positions", "closing sequences");
}

/* The keeper's commit is not flushed, either: it stands before setval() in the WAL. */
void close_sequences(Connection& connection, const Fence& fence, Connection& keeper,
                     Clock::time_point deadline)
{
    run_in_batches(connection, fence, true, deadline, [&](const std::string& batch) {
        connection.query("SELECT snowflake_internal.lock_sequence(s) FROM unnest($1::oid[]) AS s",
                         {batch});
        const Result read =
            connection.query(fence.sql("SELECT * FROM @record@.read_sequences($1)"), {batch});
        keeper.query(fence.sql("SELECT set_config('synchronous_commit', 'off', true), "
                               "@record@.keep_positions($1, $2, $3, $4)"),
                     {read.text(0, 0), read.text(0, 1), read.text(0, 2), read.text(0, 3)});
        connection.query(fence.sql("SELECT @record@.end_sequences($1)"), {batch});
    });
}

void end_sequences(Connection& connection, const Fence& fence, bool leave,
                   Clock::time_point deadline)
{
    run_in_batches(connection, fence, leave, deadline, [&](const std::string& batch) {
        connection.query(fence.sql("SELECT @record@.end_sequences($1)"), {batch});
    });
}

void release_sequences(Connection& connection, const Fence& fence, Clock::time_point deadline)
{
    run_in_batches(connection, fence, true, deadline, [&](const std::string& batch) {
        connection.query(fence.sql("SELECT @record@.release_sequences($1)"), {batch});
    });
}

/* ALTER SEQUENCE writes a new file, so it comes when no client waits. One sequence at a time:
 * others that read it wait for one short transaction. */
void mark_sequences(Connection& connection, const Fence& fence, bool leave)
{
    const std::vector<std::string> sequences = texts_of(connection.query(
        fence.sql("SELECT s::regclass FROM unnest(@record@.sequences_of($1)) AS s "
                  "WHERE s NOT IN (SELECT b.sequence FROM @record@.bounds AS b) ORDER BY 1"),
        {text_of(leave)}));
    Progress progress("closed sequences of " + connection.server(), sequences.size());
    for (const std::string& sequence : sequences) {
        lock_and_run(connection, Clock::now() + timeouts::kPatientLock, [&] {
            connection.run("SET LOCAL synchronous_commit = off");
            connection.query(fence.sql("SELECT @record@.mark($1)"), {sequence});
        });
        progress.step();
    }
}
