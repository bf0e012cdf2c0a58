#include "move/waiting.h"

#include "base/output.h"
#include "move/transaction.h"

namespace
{

constexpr auto kBetween = std::chrono::seconds(2);

/* Of a process $pid. A prepared transaction has no process: pg_blocking_pids() returns 0 for it.
 * What is not known of a process is left out: autovacuum and a session whose role was dropped have
 * no usename, and a process that has just ended has no row. */
const std::string kBlockers = R"(
    (SELECT string_agg(CASE WHEN blocker = 0 THEN 'a prepared transaction (SELECT * FROM pg_prepared_xacts)'
                            ELSE concat('process ', blocker,
                                        ' (' || nullif(concat_ws(', ', 'role ' || quote_ident(usename),
                                                                 'database ' || quote_ident(datname),
                                                                 'application ' || NULLIF(application_name, '')), '') || ')',
                                        ', whose transaction began at ' || xact_start::timestamp(0)) END, '; ')
     FROM unnest(pg_blocking_pids($pid)) AS b (blocker) LEFT JOIN pg_stat_activity AS a ON a.pid = blocker))";

std::string blockers_of(const std::string& pid)
{
    std::string sql = kBlockers;
    return sql.replace(sql.find("$pid"), 4, pid);
}

/* The sender of the stream, and those that wait to copy a table: each makes a slot, which waits for
 * the transactions that are running. 10 s is the default of wal_receiver_status_interval: a worker
 * that is alive replies that often. The sender of a physical standby has no datname. */
const std::string kOnSource = R"(
SELECT concat_ws('; ',
    coalesce((SELECT format('sender %s is in state %s', pid, state) ||
                     CASE WHEN reply_time < now() - interval '10 s'
                          THEN format(', and had its last reply at %s', reply_time::timestamp(0)) ELSE '' END
              FROM pg_stat_replication JOIN pg_replication_slots ON active_pid = pid WHERE slot_name = $1),
             'no sender runs'),
    (SELECT string_agg(format('sender %s waits for %s', pid, )" +
                              blockers_of("pid") + R"(), '; ')
     FROM pg_stat_activity
     WHERE backend_type = 'walsender' AND datname = current_database() AND cardinality(pg_blocking_pids(pid)) > 0)))";

/* relid is NULL for the apply worker, and the table for a worker that copies one. From 16 on the
 * apply worker can have parallel ones, with its pid as their leader_pid; to_jsonb(), because 15 has
 * no such column. r: the rows of the table are there, and it follows the stream. */
const std::string kOnTarget = R"(
SELECT concat_ws('; ',
    coalesce((SELECT format('worker %s runs', pid) FROM pg_stat_subscription AS w
              WHERE subname = $1 AND relid IS NULL AND pid IS NOT NULL AND to_jsonb(w)->>'leader_pid' IS NULL), 'no worker runs'),
    (SELECT format('not all rows are there of %s tables: %s%s', count(*),
                   array_to_string((array_agg(srrelid::regclass ORDER BY srrelid))[1:5], ', '),
                   CASE WHEN count(*) > 5 THEN ' ...' END)
     FROM pg_subscription_rel JOIN pg_subscription AS s ON s.oid = srsubid
     WHERE subname = $1 AND srsubstate <> 'r' HAVING count(*) > 0)))";

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

std::string describe_blockers(Connection& connection, int process)
{
    const Result found = connection.query("SELECT " + blockers_of("$1"), {std::to_string(process)});
    return visible(found.text(0, 0));
}

/* The connection is busy while it waits, so another one looks. Most calls wait for nobody, and make
 * none. */
void lock_and_run_naming(Connection& connection, Clock::time_point deadline,
                         const std::function<void()>& work)
{
    std::unique_ptr<Connection> observer;
    std::string blockers;
    const Watch watch(connection, [&] {
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

std::string describe_replication(Servers& servers, const Move& move)
{
    auto& [source, target] = servers;
    const auto describe = [](Connection& connection, const std::string& sql,
                             const std::string& name) {
        return connection.server() + ": " + visible(connection.query(sql, {name}).text(0, 0));
    };
    return describe(target, kOnTarget, move.name) + "\n" + describe(source, kOnSource, move.slot);
}
