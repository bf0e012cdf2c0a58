#include "replication/slots.h"

#include "base/interrupt.h"
#include "cutover/waiting.h"
#include "postgres/settings.h"

std::string name_slot(Connection& publisher, const std::string& purpose)
{
    const std::string sql = "SELECT oid FROM pg_database WHERE datname = current_database()";
    return purpose + "_" + publisher.query(sql).text(0, 0);
}

namespace
{

/* Runs the statement that makes a slot. A slot that is given up is dropped by the server. The
 * connection is busy while it waits, so another one looks for the transactions. */
Result await_slot(Connection& maker, Connection& observer, const std::string& sql)
{
    Wait wait([&] {
        const std::string blockers = describe_blockers(observer, maker.process_id());
        return blockers.empty() ? "" : observer.server() + ": the slot waits for " + blockers;
    });
    const Watch watch(maker, [&] {
        stop_if_interrupted();
        wait.tell();
    });
    return maker.run(sql);
}

/* From 17 on a slot can survive a failover of the publisher. CREATE SUBSCRIPTION does not change
 * the slot that it is given. */
bool can_fail_over(const Connection& publisher)
{
    return publisher.version() >= 170000;
}

} // namespace

void make_slot(Connection& publisher, const std::string& slot)
{
    Connection observer(publisher.dsn_of_server());
    withstand_settings(observer);
    await_slot(publisher, observer,
               "SELECT pg_create_logical_replication_slot(" + publisher.literal(slot) +
                   ", 'pgoutput'" + (can_fail_over(publisher) ? ", failover => true)" : ")"));
}

/* The snapshot is gone with the next command of this connection, which is in a transaction until
 * then: idle_in_transaction_session_timeout must not end it. */
SlotWithSnapshot::SlotWithSnapshot(Connection& publisher, const std::string& slot)
    : maker_(publisher.dsn_of_server() + " replication=database")
{
    withstand_settings(maker_);
    snapshot_ = await_slot(maker_, publisher,
                           "CREATE_REPLICATION_SLOT " + publisher.identifier(slot) +
                               " LOGICAL pgoutput (SNAPSHOT 'export'" +
                               (can_fail_over(publisher) ? ", FAILOVER)" : ")"))
                    .text(0, 2);
}

/* A slot that is "unreserved" can still catch up. One that is "lost" never can. */
bool has_slot(Connection& publisher, const std::string& slot)
{
    const Result found = publisher.query(R"(
        SELECT FROM pg_replication_slots WHERE slot_name = $1 AND wal_status <> 'lost'
        AND plugin = 'pgoutput' AND NOT temporary AND database = current_database())",
                                         {slot});
    return found.rows() > 0;
}

bool is_read(Connection& publisher, const std::string& slot)
{
    const std::string sql = "SELECT FROM pg_replication_slots WHERE slot_name = $1 AND active";
    return publisher.query(sql, {slot}).rows() > 0;
}

void drop_slot(Connection& publisher, const std::string& slot, Clock::time_point deadline,
               const std::string& ended)
{
    for (Pause pause;; pause()) {
        try {
            /* A process ends some time after pg_terminate_backend() has returned. */
            if (!ended.empty())
                publisher.query(R"(
                    SELECT pg_terminate_backend(pid) FROM pg_replication_slots JOIN pg_stat_activity ON pid = active_pid
                    WHERE slot_name = $1 AND )" +
                                    ended,
                                {slot});
            publisher.query("SELECT pg_drop_replication_slot(slot_name) "
                            "FROM pg_replication_slots WHERE slot_name = $1",
                            {slot});
            return;
        } catch (const ServerError&) {
            if (Clock::now() > deadline || !publisher.is_alive())
                throw;
        }
    }
}

void await_follower(Connection& publisher, const Connection& follower, const std::string& slot,
                    std::chrono::milliseconds longest)
{
    const std::string now = publisher.query("SELECT pg_current_wal_lsn()").text(0, 0);
    const Clock::time_point deadline = Clock::now() + longest;
    for (Pause pause;; pause()) {
        const Result reader = publisher.query(R"(
            SELECT confirmed_flush_lsn >= $2::pg_lsn, active
            FROM pg_replication_slots WHERE slot_name = $1)",
                                              {slot, now});
        const std::string name = "slot " + slot + " of " + publisher.server();
        if (reader.rows() == 0)
            throw Failure(name + " is gone");
        if (reader.flag(0, 0))
            return;
        /* This comes after the position: a copy that has everything can be compared though it is
         * not connected at this moment. */
        if (!reader.flag(0, 1))
            throw Failure(follower.server() + " does not read " + name);
        if (Clock::now() > deadline)
            throw Failure(follower.server() + " has not read all of " + name + " after " +
                          std::to_string(longest.count()) + " ms");
    }
}

Obstacles find_missing_to_publish(Connection& publisher)
{
    Obstacles found;
    found.read(publisher, R"(
        SELECT format('role %I may not make a slot', rolname), format('ALTER ROLE %I REPLICATION;', rolname)
        FROM pg_roles WHERE rolname = current_user AND NOT (rolreplication OR rolsuper)
        UNION ALL
        SELECT format('role %I may make no schema and no publication in database %I', current_user, current_database()),
               format('GRANT CREATE ON DATABASE %I TO %I;', current_database(), current_user)
        WHERE NOT has_database_privilege(current_database(), 'CREATE'))");
    return found;
}
