#include "cutover/writers.h"

#include <thread>

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
