#include "cutover/waiting.h"

#include <algorithm>
#include <memory>
#include <thread>

#include "base/output.h"
#include "cutover/transaction.h"
#include "postgres/settings.h"

namespace
{

constexpr auto kBetween = std::chrono::seconds(2);

/* Of a process $pid. A prepared transaction has no process: pg_blocking_pids() returns 0 for it.
 * Unknown facts of a process are left out: autovacuum and a session whose role was dropped have
 * no usename, and a process that has just ended has no row. */
const std::string kBlockers = R"(
    (SELECT string_agg(CASE WHEN blocker = 0 THEN 'a prepared transaction (SELECT * FROM pg_prepared_xacts)'
                            ELSE concat('process ', blocker,
                                        ' (' || nullif(concat_ws(', ', 'role ' || quote_ident(usename),
                                                                 'database ' || quote_ident(datname),
                                                                 'application ' || NULLIF(application_name, '')), '') || ')',
                                        ', whose transaction began at ' || xact_start::timestamp(0)) END, '; ')
     FROM unnest(pg_blocking_pids($pid)) AS b (blocker) LEFT JOIN pg_stat_activity AS a ON a.pid = blocker))";

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
