#include "move/replication.h"

#include "base/interrupt.h"
#include "base/output.h"
#include "base/timeouts.h"
#include "cutover/waiting.h"
#include "move/fingerprint.h"
#include "move/rights.h"
#include "replication/keys.h"
#include "replication/publication.h"
#include "postgres/drop_schemas.h"
#include "postgres/sql_text.h"

namespace
{

/* 10 s is the default of wal_receiver_status_interval: a worker that is alive replies that often.
 */
const char* const kOnSource = R"(
    SELECT coalesce((SELECT format('sender %s is in state %s', pid, state) ||
                     CASE WHEN reply_time < now() - interval '10 s'
                          THEN format(', and had its last reply at %s', reply_time::timestamp(0)) ELSE '' END
              FROM pg_stat_replication JOIN pg_replication_slots ON active_pid = pid WHERE slot_name = $1),
             'no sender runs'))";

std::string describe_replication(Servers& servers, const Move& move)
{
    auto& [source, target] = servers;
    const std::string worker = find_worker(target, move.name);
    return target.server() + ": " + (worker.empty() ? "no worker" : "worker " + worker) +
           " runs\n" + source.server() + ": " +
           visible(source.query(kOnSource, {move.slot}).text(0, 0));
}

} // namespace

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

void drop_unread_slot(Connection& publisher, const Move& move)
{
    drop_slot(publisher, move.slot, Clock::now() + timeouts::kSlotReader, "");
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
            if (failed.empty()) {
                failed = "replication has failed " +
                         count_of(static_cast<std::size_t>(count), "time") + "; the log of " +
                         servers.target.server() + " says why. It is tried again.";
                UncheckedKeys unchecked;
                for (const Obstacle& missing : find_missing_references(
                         servers.source, servers.target, move.shards, unchecked))
                    failed += "\n" + missing.text();
            }
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

void drop_subscription(Connection& target, const Move& move, Clock::time_point deadline)
{
    const std::string removal =
        (find_subscription(target, move).is_own() ? removal_of(move.name) : "") +
        removal_of_worker(target, move);
    if (!removal.empty())
        lock_and_run(target, deadline, [&] { target.run(removal); });
}

namespace
{

/* A client's UPDATE or DELETE looks up the publications of its table, and fails with an internal
 * error if one is dropped at that moment (RelationBuildPublicationDesc()). So the tables leave the
 * publication some time before it is dropped. It does not wait for VACUUM or CREATE INDEX
 * CONCURRENTLY, whose locks conflict. */
void take_tables_out(Connection& source, const std::string& publication)
{
    const std::vector<std::string> tables = texts_of(source.query(
        "SELECT prrelid::regclass FROM pg_publication_rel JOIN pg_publication AS p ON p.oid = "
        "prpubid WHERE pubname = $1",
        {publication}));
    if (tables.empty())
        return;
    source.run("BEGIN; SET LOCAL lock_timeout = " + milliseconds_of(timeouts::kTrialLock));
    try {
        source.run("ALTER PUBLICATION " + publication + " DROP TABLE " + only(tables));
        source.run("COMMIT");
    } catch (const ServerError& error) {
        if (error.sqlstate != kLockTimeout)
            throw;
        source.rollback();
    }
}

} // namespace

void drop_slot_of(Connection& source, const Move& move, Clock::time_point deadline)
{
    const Named publication = find_publication(source, move);
    if (publication.is_there && publication.problem.empty())
        take_tables_out(source, move.name);
    drop_slot(source, move.slot, deadline, "true");
}

/* One of somebody else is no reason to keep the rest of the move. */
void drop_publication(Connection& source, const Move& move)
{
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
        lock_and_run_naming(connection, limits.deadline(), [&] {
            /* A crash that loses it loses the drop of the schema, too: this is done again. */
            connection.run("SET LOCAL synchronous_commit = off; DROP TRIGGER snowflake_move ON " +
                           table);
        });
    lock_and_run_naming(connection, limits.deadline(),
                        [&] { drop_schemas(connection, {move.name}); });
}
