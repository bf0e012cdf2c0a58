#include "move/replication.h"

#include <algorithm>
#include <thread>

#include "base/interrupt.h"
#include "base/output.h"
#include "cutover/transaction.h"
#include "cutover/waiting.h"
#include "move/fingerprint.h"
#include "move/owned.h"
#include "postgres/dsn.h"
#include "postgres/security.h"
#include "postgres/settings.h"

namespace
{

/* Between two rounds of a wait. Each round asks both servers several questions, and nobody is
 * blocked meanwhile; but a small shard waits a few milliseconds in each step. */
class Pause
{
public:
    void operator()()
    {
        std::this_thread::sleep_for(length_);
        length_ = std::min(2 * length_, std::chrono::milliseconds(100));
    }

private:
    std::chrono::milliseconds length_ = std::chrono::milliseconds(4);
};

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
    for (Pause pause;; pause()) {
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

/* Workers, senders, and the tables whose rows are not all there. */
std::string describe_replication(Servers& servers, const Move& move)
{
    auto& [source, target] = servers;
    const auto describe = [](Connection& connection, const std::string& sql,
                             const std::string& name) {
        return connection.server() + ": " + visible(connection.query(sql, {name}).text(0, 0));
    };
    return describe(target, kOnTarget, move.name) + "\n" + describe(source, kOnSource, move.slot);
}

} // namespace

std::string dsn_of(const Connection& server, const std::string& given)
{
    std::string dsn = given;
    if (dsn.empty()) {
        const std::string password = server.password();
        dsn = server.address().dsn() + " " + dsn_setting("user", server.user()) +
              security_of(server) +
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
    find_missing_crl(target, dsn).raise_first();
    /* With create_slot = false, CREATE SUBSCRIPTION may run in a transaction block: the target gets
     * definition, state and subscription in one commit, and the trial can roll it back. */
    return move.sql("CREATE SUBSCRIPTION @move@ CONNECTION ") + target.literal(dsn) +
           move.sql(" PUBLICATION @move@ WITH (create_slot = false, ") + options + ")";
}

/* Types whose binary format is that of the value alone, in all versions. An OID is in that of an
 * array of a type that a user made, of a composite type and of regclass. Others may have another
 * format in another version of the server or of an extension. An enum is its label, and a domain
 * its type. Before 16 rows are copied as text in any case. */
std::string format_option(Servers& servers, const Move& move)
{
    if (servers.source.version() < 160000 || servers.target.version() < 160000)
        return "";
    const Result others = servers.source.query(R"(
        SELECT FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = attrelid JOIN pg_type AS t ON t.oid = atttypid
        WHERE relnamespace = $1::regnamespace AND relkind = 'r' AND attnum > 0 AND NOT attisdropped AND typtype <> 'e'
            AND CASE typtype WHEN 'd' THEN typbasetype ELSE atttypid END NOT IN (
                SELECT unnest(ARRAY[oid, typarray]) FROM pg_type
                WHERE oid = ANY ('{bool,bytea,int2,int4,int8,float4,float8,numeric,text,varchar,bpchar,date,time,
                                   timetz,timestamp,timestamptz,uuid,json,jsonb,inet,cidr}'::regtype[]))
        LIMIT 1)",
                                               {move.shard.quoted});
    return others.rows() == 0 ? ", binary = true" : "";
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

void await_replication(Servers& servers, const Move& move, const std::function<bool()>& is_done)
{
    /* The first count is no news: the statistics have the failures of an earlier command, too. */
    std::int64_t failures = -1;
    std::string failed; /* no other words follow: worker and sender come and go */
    Wait wait([&] { return failed.empty() ? describe_replication(servers, move) : failed; });
    for (Pause pause;; pause()) {
        stop_if_interrupted();
        /* A slot that is lost while this waits never comes back, and is_done() would stay false. */
        require_slot(servers.source, move);
        if (is_done())
            return;
        const std::int64_t count = count_failures(servers.target, move);
        if (failures >= 0 && count > failures) {
            /* The worker looks for a table that was dropped, and for ever. */
            require_same_definition(servers.source, move, archive_of(servers.source, move));
            if (failed.empty())
                failed = "replication has failed " +
                         count_of(static_cast<std::size_t>(count), "time") + "; the log of " +
                         servers.target.server() + " says why. It is tried again.";
        }
        failures = count;
        wait.tell();
    }
}

std::string send_probe(Connection& source, const Move& move)
{
    const std::string sql =
        "INSERT INTO @move@.marker VALUES (gen_random_uuid(), '[]') RETURNING id";
    return source.query(move.sql(sql)).text(0, 0);
}

void stop_subscription(Servers& servers, const Move& move)
{
    servers.target.run(move.sql("ALTER SUBSCRIPTION @move@ DISABLE"));
    /* Before 16 the worker looks at its subscription once a second, or when it receives something.
     */
    if (servers.target.version() < 160000)
        send_probe(servers.source, move);
    await_replication(servers, move, [&] {
        /* The view has a row for each subscription, with pid NULL if no worker runs. */
        const Result workers = servers.target.query(
            "SELECT FROM pg_stat_subscription WHERE subname = $1 AND pid IS NOT NULL", {move.name});
        return workers.rows() == 0;
    });
}

void drop_subscription(Connection& target, const Move& move, Clock::time_point deadline)
{
    if (!find_subscription(target, move).is_own())
        return;
    /* Without its slot's name, because the source drops the slot. With it, DROP SUBSCRIPTION would
     * connect to the source, and is not allowed in a transaction block. Only a disabled
     * subscription can lose its slot's name. A kill in between rolls all of it back.
     *
     * Two commands can deadlock here: each ALTER locks pg_subscription in ROW EXCLUSIVE mode, and
     * DROP in ACCESS EXCLUSIVE mode. */
    lock_and_run(target, deadline, [&] {
        target.run(move.sql(R"(
            ALTER SUBSCRIPTION @move@ DISABLE;
            ALTER SUBSCRIPTION @move@ SET (slot_name = NONE);
            DROP SUBSCRIPTION @move@)"));
    });
}

void drop_slot_and_publication(Connection& source, const Move& move, Clock::time_point deadline)
{
    /* A walsender notices late that its subscriber is dead, and holds the slot. It is asked to end,
     * and ends some time after pg_terminate_backend() has returned: the slot may be in use for some
     * tries. */
    for (Pause pause;; pause()) {
        try {
            source.query(R"(
                SELECT pg_terminate_backend(active_pid)
                FROM pg_replication_slots WHERE slot_name = $1 AND active)",
                         {move.slot});
            source.query(R"(
                SELECT pg_drop_replication_slot(slot_name)
                FROM pg_replication_slots WHERE slot_name = $1)",
                         {move.slot});
            break;
        } catch (const ServerError&) {
            if (Clock::now() > deadline)
                throw;
        }
    }
    /* One of somebody else is no reason to keep the rest of the move. */
    const Named publication = find_publication(source, move);
    if (!publication.problem.empty())
        warn(publication.problem);
    else if (publication.is_there)
        source.run("DROP PUBLICATION " + move.name);
}

/* DROP SCHEMA CASCADE would drop the triggers, too, but in one transaction that locks every table.
 * The triggers are those of the shard's tables: a trigger of another role can call fence() from a
 * table of its own, a temporary one, too. It goes with the schema, and so does that of a table that
 * has left the shard. to_regnamespace() is NULL for a schema that is gone, so a repeated call does
 * nothing. */
void drop_state(Connection& connection, const Move& move, const Limits& limits)
{
    const Result tables = connection.query(R"(
        SELECT c.oid::regclass FROM pg_trigger JOIN pg_class AS c ON c.oid = tgrelid
        WHERE tgname = 'snowflake_move' AND relnamespace = to_regnamespace($1) AND relkind IN ('r', 'p') ORDER BY 1)",
                                           {move.shard.quoted});
    for (const std::string& table : texts_of(tables)) /* one is locked at a time */
        lock_and_run_naming(connection, limits.deadline(),
                            [&] { connection.run("DROP TRIGGER snowflake_move ON " + table); });
    lock_and_run_naming(connection, limits.deadline(),
                        [&] { connection.run("DROP SCHEMA IF EXISTS " + move.name + " CASCADE"); });
}
