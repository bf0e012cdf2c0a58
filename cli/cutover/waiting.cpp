#include "cutover/waiting.h"

#include <algorithm>
#include <memory>
#include <thread>

#include "base/output.h"
#include "base/timeouts.h"
#include "postgres/settings.h"

namespace
{

constexpr auto kBetween = std::chrono::seconds(2);
constexpr int kSoon = 50; /* milliseconds */

const char* const kHowToEnd =
    "\nHINT:  SELECT pg_terminate_backend(pid); ends a process, COMMIT PREPARED or ROLLBACK "
    "PREPARED a prepared transaction.";

/* The text of a holder of a lock, a row h with pid and virtualtransaction of pg_locks. A prepared
 * transaction has no pid; it has locked its XID. While the holder stays, the text without its age
 * is the same. Unknown facts are left out: autovacuum and a session whose role was dropped have no
 * usename, and a process that has just ended has no row. */
std::string holder_sql(bool has_age)
{
    const std::string age =
        has_age ? "'transaction ' || date_trunc('second', clock_timestamp() - begin) || ' old'"
                : "NULL";
    const std::string end =
        has_age ? "NULL" : "', whose transaction began at ' || begin::timestamp(0)";
    return R"(
        CASE WHEN h.pid IS NULL THEN coalesce(
            (SELECT concat(format('prepared transaction %L (', gid),
                           concat_ws(', ', 'role ' || quote_ident(owner), 'database ' || quote_ident(p.database), )" +
           age + "), ')', " + end + R"()
             FROM pg_prepared_xacts AS p JOIN pg_locks AS l ON l.locktype = 'transactionid' AND l.transactionid = p.transaction,
             LATERAL (SELECT prepared) AS t (begin)
             WHERE l.pid IS NULL AND l.virtualtransaction = h.virtualtransaction), 'a prepared transaction')
        ELSE
            (SELECT concat('process ', h.pid,
                           ' (' || nullif(concat_ws(', ', 'role ' || quote_ident(usename),
                                                    'database ' || quote_ident(datname),
                                                    'application ' || NULLIF(application_name, ''), )" +
           age + "), '') || ')', " + end + R"()
             FROM (SELECT) AS one LEFT JOIN pg_stat_activity AS a ON a.pid = h.pid, LATERAL (SELECT xact_start) AS t (begin))
        END)";
}

} // namespace

void Wait::tell()
{
    if (Clock::now() < asked_ + kBetween)
        return;
    asked_ = Clock::now();
    std::string text = describe_();
    if (text != told_ && !text.empty())
        warn(text);
    told_ = std::move(text);
}

void Pause::operator()()
{
    std::this_thread::sleep_for(length_);
    length_ = std::min(2 * length_, std::chrono::milliseconds(100));
}

namespace
{

/* The process waits itself, or its session of another role does. pg_blocking_pids() returns 0 for a
 * prepared transaction, which pg_locks has without a pid. */
std::string blockers_of(Connection& connection, int process, bool has_age)
{
    const Result found =
        connection.query("WITH waiting AS (SELECT pid, pg_blocking_pids(pid) AS blockers FROM "
                         "pg_stat_activity WHERE pid = $1::integer OR application_name = "
                         "'snowflake-shard session of process ' || $1) "
                         "SELECT string_agg(" +
                             holder_sql(has_age) + R"(, '; ') FROM (
            SELECT blocker, NULL FROM waiting, unnest(blockers) AS blocker WHERE blocker <> 0
            UNION
            SELECT NULL, held.virtualtransaction
            FROM waiting JOIN pg_locks AS awaited ON awaited.pid = waiting.pid JOIN pg_locks AS held
            ON (held.locktype, held.database, held.relation, held.transactionid, held.classid, held.objid)
               IS NOT DISTINCT FROM
               (awaited.locktype, awaited.database, awaited.relation, awaited.transactionid, awaited.classid, awaited.objid)
            WHERE 0 = ANY (blockers) AND NOT awaited.granted AND held.granted AND held.pid IS NULL) AS h (pid, virtualtransaction))",
                         {std::to_string(process)});
    return visible(found.text(0, 0));
}

} // namespace

std::string describe_blockers(Connection& connection, int process)
{
    return blockers_of(connection, process, false);
}

/* The connection is busy while it waits, so another one looks. Most calls wait for nobody: they
 * have ended before, and make none. */
void lock_and_run_naming(Connection& connection, Clock::time_point deadline,
                         const std::function<void()>& work)
{
    const auto start = Clock::now();
    std::unique_ptr<Connection> observer;
    std::string blockers;
    const Watch watch(connection, [&] {
        if (milliseconds_since(start) < kSoon)
            return;
        if (!observer) {
            observer = std::make_unique<Connection>(connection.dsn());
            withstand_settings(*observer);
        }
        const std::string found = blockers_of(*observer, connection.process_id(), true);
        if (!found.empty())
            blockers = found;
    });
    try {
        lock_and_run(connection, deadline, work);
    } catch (const Late& late) {
        throw Late(late.what() +
                   (blockers.empty() ? "" : "\nIt has waited for " + blockers + kHowToEnd));
    }
}

namespace
{

/* The locks of transactions that write to relations: INSERT, UPDATE and DELETE take ROW EXCLUSIVE,
 * and so does nextval(), TRUNCATE takes ACCESS EXCLUSIVE. VACUUM and ANALYZE (SHARE UPDATE
 * EXCLUSIVE) write no rows that would be lost. A relation of another database can have the same
 * OID.
 *
 * And the locks of transactions that make a relation in a schema, or bring one there by SET SCHEMA:
 * it is in no catalog yet that another session can read, but they keep ACCESS SHARE on the schema.
 * A reader of the command has that lock, too, but no XID. */
std::string locks_of_writers(const std::string& relations, const std::string& schemas)
{
    return R"(
        FROM pg_locks
        WHERE granted AND pid IS DISTINCT FROM pg_backend_pid()
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND (locktype = 'relation'
             AND mode IN ('RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
             AND relation IN ()" +
           relations + R"()
             OR locktype = 'object' AND classid = 'pg_namespace'::regclass AND objid IN ()" +
           schemas + R"()
             AND virtualtransaction IN (SELECT x.virtualtransaction FROM pg_locks AS x
                                        WHERE x.locktype = 'transactionid' AND x.mode = 'ExclusiveLock')))";
}

} // namespace

/* Only the writers of the first query are awaited: those that come later meet the fence, and a busy
 * table would never be without any. A new table has no fence, so each transaction that makes one
 * is awaited. A prepared transaction has no process; all of them are awaited, also one that was
 * prepared during the wait. */
void await_writers(Connection& connection, const std::string& tables, const std::string& schemas,
                   Clock::time_point deadline)
{
    const std::string from = locks_of_writers(tables, schemas);
    const Result writers =
        connection.query("SELECT coalesce(array_agg(virtualtransaction), '{}')" + from);
    const std::string left =
        from + " AND (virtualtransaction = ANY ($1::text[]) OR pid IS NULL OR locktype = 'object')";
    const std::vector<std::string> awaited = {writers.text(0, 0)};
    auto described_at = Clock::now();
    std::string described;
    try {
        /* Short, because clients cannot write meanwhile. */
        for (;; std::this_thread::sleep_for(std::chrono::milliseconds(2))) {
            if (connection.query("SELECT" + left + " LIMIT 1", awaited).rows() == 0)
                return;
            /* Most end at once. After the deadline there is no answer. */
            if (milliseconds_since(described_at) > kSoon) {
                described_at = Clock::now();
                described =
                    visible(connection
                                .query("SELECT string_agg(" + holder_sql(true) +
                                           ", '; ') FROM (SELECT DISTINCT pid, virtualtransaction" +
                                           left + ") AS h",
                                       awaited)
                                .text(0, 0));
            }
            if (Clock::now() > deadline)
                throw Late("");
        }
    } catch (const Late&) { /* of this, or of a Watch during the query */
        if (described.empty())
            throw;
        throw Late(described + " writes to the shard, and did not end in time" + kHowToEnd);
    }
}

std::function<void()> late_at(const Connection& connection, Clock::time_point deadline)
{
    return [&connection, deadline] {
        if (Clock::now() > deadline)
            throw Late(connection.server() + " did not answer in time");
    };
}

namespace
{

void lock_run_and_end(Connection& connection, Clock::time_point deadline,
                      const std::function<void()>& work, const std::string& end)
{
    /* The lock timeout is short, and a pause of the same length follows: while we wait for a lock,
     * clients queue behind us; between two tries they continue. */
    for (auto wait = std::chrono::milliseconds(50);;
         wait = std::min(2 * wait, timeouts::kOneLock)) {
        try {
            connection.run("BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = " +
                           std::to_string(wait.count()));
            work();
            connection.run(end);
            return;
        } catch (const std::exception& error) {
            connection.rollback();
            /* The next try may succeed, also after a deadlock. */
            const auto* refusal = dynamic_cast<const ServerError*>(&error);
            if (refusal == nullptr ||
                (refusal->sqlstate != kLockTimeout && refusal->sqlstate != kDeadlock))
                throw;
            /* The pause would end after the deadline, so there is no time for another try. */
            if (Clock::now() + wait > deadline)
                throw Late(error.what());
        }
        std::this_thread::sleep_for(wait);
    }
}

} // namespace

void lock_and_run(Connection& connection, Clock::time_point deadline,
                  const std::function<void()>& work)
{
    lock_run_and_end(connection, deadline, work, "COMMIT");
}

void lock_and_begin(Connection& connection, Clock::time_point deadline,
                    const std::function<void()>& work)
{
    lock_run_and_end(connection, deadline, work, "");
}
