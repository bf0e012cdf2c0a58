#include "global/publication.h"

#include <thread>

#include "base/clock.h"
#include "base/interrupt.h"
#include "global/tables.h"
#include "cutover/transaction.h"
#include "cutover/waiting.h"
#include "postgres/settings.h"
#include "postgres/trust.h"

namespace
{

/* Adding a table takes a lock that waits for VACUUM, CREATE INDEX and the like. */
constexpr auto kTimeout = std::chrono::seconds(10);

/* The second row of a problem is never shown: a publication of another role is not looked into.
 * The hint of the last keeps the tables that the subscriptions have. */
std::string problems_sql()
{
    return R"(
SELECT format('publication %I is of role %I, which is neither this role nor a superuser', pubname, pg_get_userbyid(pubowner)),
       format('DROP PUBLICATION %I;', pubname)
FROM pg_publication WHERE pubname = $1 AND NOT )" +
           is_trusted("pubowner") + R"(
UNION ALL
SELECT format('publication %I is for all tables, or for all tables of a schema', pubname), format('DROP PUBLICATION %I;', pubname)
FROM pg_publication AS p WHERE pubname = $1 AND (puballtables OR EXISTS (SELECT FROM pg_publication_namespace WHERE pnpubid = p.oid))
UNION ALL
SELECT format('publication %I sends not all rows or columns of table %s', pubname, prrelid::regclass),
       format('ALTER PUBLICATION %I SET TABLE %s;', pubname,
              (SELECT string_agg(a.prrelid::regclass::text, ', ') FROM pg_publication_rel AS a WHERE a.prpubid = p.oid))
FROM pg_publication AS p JOIN pg_publication_rel AS r ON prpubid = p.oid
WHERE pubname = $1 AND (prqual IS NOT NULL OR prattrs IS NOT NULL)
UNION ALL
SELECT format('publication %I sends not all changes', pubname),
       format('ALTER PUBLICATION %I SET (publish = ''insert, update, delete, truncate'');', pubname)
FROM pg_publication WHERE pubname = $1 AND NOT (pubinsert AND pubupdate AND pubdelete AND pubtruncate))";
}

} // namespace

Publication find_publication(Connection& writer)
{
    Publication found;
    const Result row = writer.query("SELECT " + is_trusted("pubowner") +
                                        ", obj_description(oid, 'pg_publication') FROM "
                                        "pg_publication WHERE pubname = $1",
                                    {kGlobal});
    found.is_there = row.rows() > 0;
    found.is_own = found.is_there && row.flag(0, 0);
    if (found.is_own)
        found.change = change_of(row.text(0, 1));
    const Result tables =
        writer.query("SELECT prrelid::regclass, prrelid FROM pg_publication_rel JOIN "
                     "pg_publication AS p ON p.oid = prpubid WHERE pubname = $1 ORDER BY "
                     "prrelid::regclass::text",
                     {kGlobal});
    found.tables = texts_of(tables);
    found.oids = array_of(tables, 1);
    const Result problems = writer.query(problems_sql(), {kGlobal});
    if (problems.rows() > 0) {
        found.problem = problems.text(0, 0);
        found.hint = problems.text(0, 1);
    }
    return found;
}

Publication require_publication(Connection& writer)
{
    Publication found = find_publication(writer);
    if (!found.problem.empty())
        throw Failure(writer.server() + ": " + visible(found.problem) +
                      "\nHINT:  " + visible(found.hint));
    return found;
}

/* ONLY: a child that a table gets later is not published, and the writer's table is then one that
 * verify reports. */
void publish(Connection& writer, const std::vector<std::string>& tables)
{
    std::string list;
    for (const std::string& table : tables)
        list += (list.empty() ? "ONLY " : ", ONLY ") + table;
    const std::string verb = find_publication(writer).is_there
                                 ? "ALTER PUBLICATION " + kGlobal + " ADD TABLE "
                                 : "CREATE PUBLICATION " + kGlobal + " FOR TABLE ";
    lock_and_run_naming(writer, Clock::now() + kTimeout, [&] { writer.run(verb + list); });
}

void unpublish(Connection& writer, const std::vector<std::string>& tables)
{
    std::string list;
    for (const std::string& table : tables)
        list += (list.empty() ? "ONLY " : ", ONLY ") + table;
    lock_and_run_naming(writer, Clock::now() + kTimeout, [&] {
        writer.run("ALTER PUBLICATION " + kGlobal + " DROP TABLE " + list);
    });
}

void drop_publication(Connection& writer)
{
    if (require_publication(writer).is_there)
        lock_and_run_naming(writer, Clock::now() + kTimeout,
                            [&] { writer.run("DROP PUBLICATION " + kGlobal); });
}

void note_change(Connection& writer, const PendingChange& change)
{
    writer.run("COMMENT ON PUBLICATION " + kGlobal + " IS " +
               (change.id.empty() ? "NULL" : writer.literal(comment_of(change))));
}

std::vector<std::string> slots_of_followers(Connection& writer)
{
    return texts_of(writer.query("SELECT slot_name FROM pg_replication_slots WHERE "
                                 "starts_with(slot_name, $1) AND database = current_database() "
                                 "ORDER BY slot_name",
                                 {kGlobal + "_"}));
}

bool is_name_of_slot(const std::string& slot)
{
    return slot.compare(0, kGlobal.size() + 1, kGlobal + "_") == 0;
}

void make_slot(Connection& writer, const std::string& slot)
{
    /* The connection of the statement is busy while it waits, so another one looks. */
    Connection observer(writer.dsn_of_server());
    withstand_settings(observer);
    Wait wait([&] {
        const std::string blockers = describe_blockers(observer, writer.process_id());
        return blockers.empty() ? "" : writer.server() + ": the slot waits for " + blockers;
    });
    const Watch watch(writer, [&] {
        stop_if_interrupted();
        wait.tell();
    });
    writer.query("SELECT pg_create_logical_replication_slot($1, 'pgoutput')", {slot});
}

bool has_slot(Connection& writer, const std::string& slot)
{
    return writer
               .query("SELECT FROM pg_replication_slots WHERE slot_name = $1 AND wal_status <> "
                      "'lost' AND plugin = 'pgoutput' AND NOT temporary AND database = "
                      "current_database()",
                      {slot})
               .rows() > 0;
}

/* The session of a killed command can hold the slot while it makes it. A walsender ends soon after
 * its worker. One that stays is that of another server. */
void drop_slot(Connection& writer, const std::string& slot)
{
    const std::string reader =
        "FROM pg_replication_slots JOIN pg_stat_activity ON pid = active_pid "
        "WHERE slot_name = $1 AND backend_type ";
    for (const Clock::time_point deadline = Clock::now() + kTimeout;;
         std::this_thread::sleep_for(std::chrono::milliseconds(100))) {
        try {
            writer.query("SELECT pg_terminate_backend(pid) " + reader + "<> 'walsender'", {slot});
            writer.query("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots "
                         "WHERE slot_name = $1 AND database = current_database()",
                         {slot});
            return;
        } catch (const ServerError&) {
            if (Clock::now() < deadline)
                continue;
            const Result other = writer.query("SELECT concat(client_addr, ', process ' || pid) " +
                                                  reader + "= 'walsender'",
                                              {slot});
            if (other.rows() == 0)
                throw;
            throw Failure("slot " + slot + " on " + writer.server() +
                          " is read by another server (" + other.text(0, 0) +
                          "), which has the same subscription, as after a split\nHINT:  Give both "
                          "servers to snowflake-shard global add: each gets a slot of its own.");
        }
    }
}

void copy_slot(Connection& writer, const std::string& slot, const std::string& copy)
{
    writer.query("SELECT pg_copy_logical_replication_slot($1, $2)", {slot, copy});
}
