#include "cutover/waiting.h"

#include <algorithm>
#include <memory>
#include <thread>

#include "base/output.h"
#include "postgres/settings.h"

namespace
{

constexpr auto kBetween = std::chrono::seconds(2);

/* Of a process $pid. A prepared transaction has no process: pg_blocking_pids() returns 0 for it.
 * Unknown facts of a process are left out: autovacuum and a session whose role was dropped have
 * no usename, and a process that has just ended has no row. No std::string: blockers_of() makes
 * constants of other sources, which can be initialized before those of this one. */
const char* const kBlockers = R"(
    (SELECT string_agg(CASE WHEN blocker = 0 THEN 'a prepared transaction (SELECT * FROM pg_prepared_xacts)'
                            ELSE concat('process ', blocker,
                                        ' (' || nullif(concat_ws(', ', 'role ' || quote_ident(usename),
                                                                 'database ' || quote_ident(datname),
                                                                 'application ' || NULLIF(application_name, '')), '') || ')',
                                        ', whose transaction began at ' || xact_start::timestamp(0)) END, '; ')
     FROM unnest(pg_blocking_pids($pid)) AS b (blocker) LEFT JOIN pg_stat_activity AS a ON a.pid = blocker))";

/* Others wait behind it for so long at most. */
constexpr auto kLongestWait = std::chrono::milliseconds(1000);

} // namespace

std::string blockers_of(const std::string& pid)
{
    std::string sql = kBlockers;
    return sql.replace(sql.find("$pid"), 4, pid);
}

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

std::string describe_blockers(Connection& connection, int process)
{
    const Result found = connection.query("SELECT " + blockers_of("$1"), {std::to_string(process)});
    return visible(found.text(0, 0));
}

/* The connection is busy while it waits, so another one looks. Most calls wait for nobody: they
 * have ended before, and make none. */
void lock_and_run_naming(Connection& connection, Clock::time_point deadline,
                         const std::function<void()>& work)
{
    constexpr int kSoon = 50; /* milliseconds */
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
        const std::string found = describe_blockers(*observer, connection.process_id());
        if (!found.empty())
            blockers = found;
    });
    try {
        lock_and_run(connection, deadline, work);
    } catch (const Late& late) {
        throw Late(late.what() +
                   (blockers.empty()
                        ? ""
                        : "\nIt has waited for " + blockers +
                              "\nHINT:  SELECT pg_terminate_backend(pid); ends a process."));
    }
}

/* A transaction that has locked a table for writing: INSERT, UPDATE and DELETE take ROW EXCLUSIVE,
 * TRUNCATE takes ACCESS EXCLUSIVE. VACUUM and ANALYZE (SHARE UPDATE EXCLUSIVE) write no rows that
 * would be lost. Only the transactions of the first query are awaited: those that come later meet
 * the fence, and a busy table would never be without any. A prepared one has no process; all of
 * them are awaited, also one that was prepared during the wait. A relation of another database can
 * have the same OID. */
void await_writers(Connection& connection, const std::string& tables, Clock::time_point deadline)
{
    const std::string from = R"(
        FROM pg_locks
        WHERE locktype = 'relation' AND granted
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND mode IN ('RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
        AND relation IN ()" + tables +
                             ")";
    const Result writers =
        connection.query("SELECT coalesce(array_agg(virtualtransaction), '{}')" + from);
    std::string last;
    try {
        /* Short, because clients cannot write meanwhile. */
        for (;; std::this_thread::sleep_for(std::chrono::milliseconds(2))) {
            const Result left = connection.query(
                "SELECT coalesce('process ' || pid, 'prepared transaction ' || "
                "virtualtransaction)" +
                    from + " AND (virtualtransaction = ANY ($1::text[]) OR pid IS NULL)",
                {writers.text(0, 0)});
            if (left.rows() == 0)
                return;
            last = left.text(0, 0);
            if (Clock::now() > deadline)
                throw Late("");
        }
    } catch (const Late&) { /* of this, or of a Watch during the query */
        if (last.empty())
            throw;
        throw Late(last + " writes to the shard, and did not end in time");
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

void lock_and_run(Connection& connection, Clock::time_point deadline,
                  const std::function<void()>& work, const std::string& end)
{
    /* A short timeout and a pause of the same length: while we wait for a lock, clients queue
     * behind us; between two tries they go on. */
    for (auto wait = std::chrono::milliseconds(50);; wait = std::min(2 * wait, kLongestWait)) {
        try {
            connection.run("BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = " +
                           std::to_string(wait.count()));
            work();
            connection.run(end);
            return;
        } catch (const std::exception& error) {
            connection.rollback();
            /* After a deadlock, too, the next try may succeed. */
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
    lock_and_run(connection, deadline, work, "COMMIT");
}

void lock_and_begin(Connection& connection, Clock::time_point deadline,
                    const std::function<void()>& work)
{
    lock_and_run(connection, deadline, work, "");
}
