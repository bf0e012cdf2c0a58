#include "move/replication.h"

#include <thread>

#include "base/interrupt.h"
#include "base/output.h"
#include "move/fingerprint.h"
#include "move/waiting.h"
#include "postgres/dsn.h"

namespace
{

/* Each round asks both servers several questions. Nobody is blocked during these waits. */
constexpr auto kPoll = std::chrono::milliseconds(100);

/* Since the statistics of the subscription were made. */
std::int64_t count_failures(Connection& target, const Move& move)
{
    /* By the end of the names, because PostgreSQL 19 has renamed one of the columns, and has one
     * more. */
    return target
        .query(R"(
            SELECT coalesce(sum(value::bigint), 0)
            FROM pg_stat_subscription_stats AS s CROSS JOIN jsonb_each_text(to_jsonb(s))
            WHERE subname = $1 AND key LIKE '%\_error\_count')",
               {move.name})
        .number(0, 0);
}

/* The backend of a killed command releases its locks before its slot, so such a slot can be in use
 * for a moment. The error of the server names the slot and the process. */
void drop_left_slot(Connection& connection, const std::string& slot)
{
    const std::string object_in_use = "55006";
    const Clock::time_point deadline = Clock::now() + std::chrono::seconds(5);
    for (;; std::this_thread::sleep_for(kPoll)) {
        stop_if_interrupted();
        try {
            connection.query("SELECT pg_drop_replication_slot(slot_name) "
                             "FROM pg_replication_slots WHERE slot_name = $1",
                             {slot});
            return;
        } catch (const ServerError& error) {
            if (error.sqlstate != object_in_use || Clock::now() > deadline)
                throw;
        }
    }
}

} // namespace

std::string dsn_of(const Connection& server, const std::string& given)
{
    std::string dsn = given;
    if (dsn.empty()) {
        const std::string password = server.password();
        dsn = dsn_setting("host", server.host()) + " " + dsn_setting("port", server.port()) + " " +
              dsn_setting("dbname", server.database()) + " " + dsn_setting("user", server.user()) +
              (password.empty() ? "" : " " + dsn_setting("password", password));
    }
    /* Settings of the role must not end the copy of a table, or hide rows from it: with
     * row_security = off a policy is an error. Minor releases before 2026 may ignore these options
     * (docs/command.md). A server refuses a connection that names a setting which it does not
     * know. */
    return dsn_with_options(dsn,
                            std::string("-c statement_timeout=0 -c lock_timeout=0 "
                                        "-c idle_in_transaction_session_timeout=0 "
                                        "-c idle_session_timeout=0 -c row_security=off") +
                                (server.version() >= 170000 ? " -c transaction_timeout=0" : ""));
}

std::string subscription_sql(Connection& target, const Move& move, const std::string& dsn,
                             const std::string& options)
{
    /* With create_slot = false, CREATE SUBSCRIPTION may run in a transaction block: the target gets
     * definition, state and subscription in one commit, and the trial can roll it back. */
    return move.sql("CREATE SUBSCRIPTION @move@ CONNECTION ") + target.literal(dsn) +
           move.sql(" PUBLICATION @move@ WITH (create_slot = false, ") + options + ")";
}

void make_publication(Connection& source, const Move& move)
{
    /* The tables by name: FOR TABLES IN SCHEMA needs a superuser. Partitions are among them, and
     * their partitioned tables are not. ONLY: children of the schema are named themselves, and a
     * foreign or temporary one cannot be published. */
    std::string tables = move.name + ".marker";
    for (const std::string& table : tables_of(source, move.shard))
        tables += ", ONLY " + table;
    source.run(move.sql("CREATE PUBLICATION @move@ FOR TABLE ") + tables);
}

bool has_slot(Connection& source, const Move& move)
{
    /* A slot that is "unreserved" can still catch up. One that is "lost" never can. Any role with
     * REPLICATION can have made one of this name that sends other things. */
    return source
               .query("SELECT FROM pg_replication_slots WHERE slot_name = $1 AND "
                      "wal_status <> 'lost' AND plugin = 'pgoutput' AND NOT temporary AND "
                      "database = current_database()",
                      {move.slot})
               .rows() > 0;
}

void require_slot(Connection& source, const Move& move)
{
    if (!has_slot(source, move))
        throw MustStartAnew("slot " + move.slot +
                            " is gone, or max_slot_wal_keep_size is too small and " +
                            "it has lost WAL that was not replicated yet");
}

void make_slot(Connection& source, const Move& move)
{
    drop_left_slot(source, move.slot);
    /* It waits for the transactions that are running in the whole cluster. A slot that is given up
     * is dropped by the server. The connection of the statement is busy meanwhile, so another one
     * looks for the transactions. */
    Connection observer = source.another();
    withstand_settings(observer);
    Wait wait([&] {
        const std::string blockers = describe_blockers(observer, source.process_id());
        return blockers.empty() ? "" : source.server() + ": the slot waits for " + blockers;
    });
    const Watch watch(source, [&] {
        stop_if_interrupted();
        wait.tell();
    });
    source.query("SELECT pg_create_logical_replication_slot($1, 'pgoutput')", {move.slot});
}

void stop_if_interrupted()
{
    if (is_interrupted())
        throw Failure("stopped");
}

void await_replication(Servers& servers, const Move& move, const std::function<bool()>& is_done)
{
    /* The first count is no news: the statistics have the failures of an earlier command, too. */
    std::int64_t failures = -1;
    std::string failed; /* no other words follow: worker and sender come and go */
    Wait wait([&] { return failed.empty() ? describe_replication(servers, move) : failed; });
    for (;; std::this_thread::sleep_for(kPoll)) {
        stop_if_interrupted();
        /* A slot that is lost while this waits never comes back, and is_done() would stay false. */
        require_slot(servers.source, move);
        if (is_done())
            return;
        const std::int64_t count = count_failures(servers.target, move);
        if (failures >= 0 && count > failures) {
            /* The worker looks for a table that was dropped, and for ever. */
            require_same_definition(servers.source, move);
            if (failed.empty())
                failed = "replication has failed " +
                         count_of(static_cast<std::size_t>(count), "time") + "; the log of " +
                         servers.target.server() + " says why. It is tried again.";
        }
        failures = count;
        wait.tell();
    }
}

void stop_subscription(Servers& servers, const Move& move)
{
    servers.target.run(move.sql("ALTER SUBSCRIPTION @move@ DISABLE"));
    await_replication(servers, move, [&] {
        /* The view has a row for each subscription, with pid NULL if no worker runs. */
        const Result workers = servers.target.query(
            "SELECT FROM pg_stat_subscription WHERE subname = $1 AND pid IS NOT NULL", {move.name});
        return workers.rows() == 0;
    });
}
