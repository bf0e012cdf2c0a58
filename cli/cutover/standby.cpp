#include "cutover/standby.h"

#include <memory>
#include <thread>

#include "base/interrupt.h"
#include "base/quoting.h"
#include "base/timeouts.h"
#include "cutover/waiting.h"

/* synchronous_standby_names is "a, b", "2 (a, b)", "FIRST 2 (a, b)" or "ANY 2 (a, b)". A standby
 * that does not stream is neither sync nor quorum. */
Obstacles find_missing_standby(Connection& connection)
{
    Obstacles found;
    found.read(connection, R"(
        SELECT format('synchronous_standby_names = %L, and %s of %s such standbys follow: each COMMIT would wait', names, there, needed),
               'Start the standby, or change synchronous_standby_names.'
        FROM (SELECT current_setting('synchronous_standby_names')) AS s (names),
        LATERAL (SELECT coalesce(substring(lower(names) FROM '^\s*(?:first|any)?\s*(\d+)\s*\(')::integer, 1)) AS n (needed),
        LATERAL (SELECT count(*) FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')) AS t (there)
        WHERE names <> '' AND there < needed AND pg_has_role('pg_read_all_stats', 'USAGE'))");
    return found;
}

/* pg_receivewal reports no position of a replay, and a flush only at the end of a file. The sleep
 * is short, because clients cannot write meanwhile. */
void await_standbys(Connection& server, Clock::time_point deadline)
{
    const std::string now = server.query("SELECT pg_current_wal_lsn()").text(0, 0);
    for (;; std::this_thread::sleep_for(std::chrono::milliseconds(2))) {
        const Result behind = server.query(R"(
            SELECT format('standby %I has flushed the WAL up to %s, and not up to %s', application_name, flush_lsn, $1::pg_lsn)
            FROM pg_stat_replication
            WHERE state = 'streaming' AND replay_lsn IS NOT NULL AND flush_lsn < $1::pg_lsn
              AND pid NOT IN (SELECT active_pid FROM pg_replication_slots WHERE slot_type = 'logical' AND active_pid IS NOT NULL))",
                                           {now});
        if (behind.rows() == 0)
            return;
        if (Clock::now() > deadline)
            throw Late(server.server() + ": " + visible(behind.text(0, 0)) +
                       ". It could take over without the fence");
    }
}

/* The connection is busy while it waits, so another one looks. A server that does not answer that
 * one soon is no reason to end the statement. */
std::function<void()> tell_of_standby(const Connection& connection)
{
    const auto observer = std::make_shared<std::unique_ptr<Connection>>();
    const auto describe = [&connection, observer]() -> std::string {
        try {
            if (*observer == nullptr)
                *observer =
                    std::make_unique<Connection>(connection.dsn_of_server() + " connect_timeout=" +
                                                 std::to_string(timeouts::kObserver.count()));
            const Watch watch(**observer,
                              late_at(**observer, Clock::now() + timeouts::kObserverAnswer));
            const Result waits = (*observer)->query(
                "SELECT current_setting('synchronous_standby_names') FROM pg_stat_activity "
                "WHERE pid = $1 AND wait_event = 'SyncRep'",
                {std::to_string(connection.process_id())});
            return waits.rows() == 0
                       ? ""
                       : connection.server() +
                             ": a COMMIT waits for a synchronous standby, which does not answer: "
                             "synchronous_standby_names = " +
                             visible(waits.text(0, 0));
        } catch (const Failure&) {
            observer->reset();
            return "";
        }
    };
    return [wait = std::make_shared<Wait>(describe)] { wait->tell(); };
}

std::function<void()> stop_or_tell(const Connection& connection)
{
    return [tell = tell_of_standby(connection)] {
        stop_if_interrupted();
        tell();
    };
}
