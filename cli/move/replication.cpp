#include "move/replication.h"

#include "base/interrupt.h"
#include "base/output.h"
#include "cutover/waiting.h"
#include "move/fingerprint.h"
#include "replication/publication.h"

namespace
{

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
        WHERE relnamespace = ANY ($1::regnamespace[]) AND relkind = 'r' AND attnum > 0 AND NOT attisdropped AND typtype <> 'e'
            AND CASE typtype WHEN 'd' THEN typbasetype ELSE atttypid END NOT IN (
                SELECT unnest(ARRAY[oid, typarray]) FROM pg_type
                WHERE oid = ANY ('{bool,bytea,int2,int4,int8,float4,float8,numeric,text,varchar,bpchar,date,time,
                                   timetz,timestamp,timestamptz,uuid,json,jsonb,inet,cidr}'::regtype[]))
        LIMIT 1)",
                                               {move.schemas()});
    return others.rows() == 0 ? ", binary = true" : "";
}

void make_publication(Connection& source, const Move& move)
{
    /* The tables by name: FOR TABLES IN SCHEMA needs a superuser. Partitions are among them, and
     * their partitioned tables are not. ONLY: children of the schema are named themselves, and a
     * foreign or temporary one cannot be published. */
    std::vector<std::string> tables = tables_of(source, move.shards);
    tables.push_back(move.name + ".marker");
    source.run("CREATE PUBLICATION " + move.name + " FOR TABLE " + only(tables));
}

void require_slot(Connection& source, const Move& move)
{
    if (!has_slot(source, move.slot))
        throw MustStartAnew("slot " + move.slot +
                            " is gone, or max_slot_wal_keep_size is too small and " +
                            "it has lost WAL that was not replicated yet");
}

void make_slot_anew(Connection& publisher, const Move& move)
{
    drop_slot(publisher, move.slot, Clock::now() + std::chrono::seconds(5), "");
    make_slot(publisher, move.slot);
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
        const std::int64_t count = count_failures(servers.target, move.name);
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
    await_replication(servers, move, [&] { return !has_worker(servers.target, move.name); });
}

void drop_subscription(Connection& target, const Move& move, Clock::time_point deadline)
{
    if (find_subscription(target, move).is_own())
        drop_subscription(target, move.name, deadline);
}

void drop_slot_and_publication(Connection& source, const Move& move, Clock::time_point deadline)
{
    drop_slot(source, move.slot, deadline, "true");
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
        WHERE tgname = 'snowflake_move' AND relnamespace = ANY (ARRAY(SELECT to_regnamespace(name) FROM unnest($1::text[]) AS name)) AND relkind IN ('r', 'p') ORDER BY 1)",
                                           {move.schemas()});
    for (const std::string& table : texts_of(tables)) /* one is locked at a time */
        lock_and_run_naming(connection, limits.deadline(),
                            [&] { connection.run("DROP TRIGGER snowflake_move ON " + table); });
    lock_and_run_naming(connection, limits.deadline(),
                        [&] { connection.run("DROP SCHEMA IF EXISTS " + move.name + " CASCADE"); });
}
