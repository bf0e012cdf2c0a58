#include "global/publication.h"

#include "base/timeouts.h"
#include "cutover/waiting.h"
#include "postgres/trust.h"
#include "replication/publication.h"
#include "replication/slots.h"

namespace
{

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
SELECT format('publication %I is for all tables, or for all tables of a schema', pubname),
       CASE WHEN puballtables THEN format('DROP PUBLICATION %I;', pubname)
            ELSE (SELECT format('ALTER PUBLICATION %I DROP TABLES IN SCHEMA %s;', pubname, string_agg(pnnspid::regnamespace::text, ', '))
                  FROM pg_publication_namespace WHERE pnpubid = p.oid) END
FROM pg_publication AS p WHERE pubname = $1 AND )" +
           kIsForAll + R"(
UNION ALL
SELECT format('publication %I sends not all rows or columns of table %s', pubname, prrelid::regclass),
       format('ALTER PUBLICATION %I SET TABLE %s;', pubname,
              (SELECT string_agg(a.prrelid::regclass::text, ', ') FROM pg_publication_rel AS a WHERE a.prpubid = p.oid))
FROM pg_publication AS p JOIN pg_publication_rel AS r ON prpubid = p.oid
WHERE pubname = $1 AND )" +
           kIsPartial + R"(
UNION ALL
SELECT format('publication %I sends not all changes', pubname),
       format('ALTER PUBLICATION %I SET (publish = ''insert, update, delete, truncate'');', pubname)
FROM pg_publication WHERE pubname = $1 AND NOT (pubinsert AND pubupdate AND pubdelete AND pubtruncate)
LIMIT 1)";
}

Result read_tables(const Reader& writer)
{
    return writer.query(R"(
        SELECT prrelid::regclass, prrelid FROM pg_publication_rel JOIN pg_publication AS p ON p.oid = prpubid
        WHERE pubname = $1 ORDER BY prrelid::regclass::text)",
                        {kGlobal});
}

} // namespace

Names published_tables(const Reader& writer)
{
    return texts_of(read_tables(writer));
}

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
    const Result tables = read_tables(writer);
    found.tables = texts_of(tables);
    found.oids = array_of(tables, 1);
    found.problem.read(writer, problems_sql(), {kGlobal});
    return found;
}

Publication require_publication(Connection& writer)
{
    Publication found = find_publication(writer);
    found.problem.raise_first();
    return found;
}

/* It takes a lock that waits for VACUUM, CREATE INDEX and the like. ONLY: a child that a table gets
 * later is not published, and the writer's table is then one that verify reports. */
void publish(Connection& writer, const Names& tables, const std::string& oids)
{
    const Publication before = find_publication(writer);
    const std::string verb = before.is_there ? "ALTER PUBLICATION " + kGlobal + " ADD TABLE "
                                             : "CREATE PUBLICATION " + kGlobal + " FOR TABLE ";
    lock_and_change(writer, [&] {
        writer.run(verb + only(tables));
        const Result other = writer.query(R"(
            SELECT prrelid::regclass FROM pg_publication_rel JOIN pg_publication AS p ON p.oid = prpubid
            WHERE pubname = $1 AND prrelid <> ALL ($2::oid[] || $3::oid[]))",
                                          {kGlobal, before.oids, oids});
        if (other.rows() > 0)
            throw Failure(writer.server() + ": table " + visible(other.text(0, 0)) +
                          " is not the one that was checked. It was not published");
    });
}

void unpublish(Connection& writer, const Names& tables)
{
    lock_and_change(writer, [&] {
        writer.run("ALTER PUBLICATION " + kGlobal + " DROP TABLE " + only(tables));
    });
}

void drop_unread_publication(Connection& writer)
{
    if (slots_of_followers(writer).empty() && require_publication(writer).is_there)
        lock_and_change(writer, [&] { writer.run("DROP PUBLICATION " + kGlobal); });
}

void forget_change(Connection& writer)
{
    writer.run("COMMENT ON PUBLICATION " + kGlobal + " IS NULL");
}

Names slots_of_followers(Connection& writer)
{
    return texts_of(writer.query(R"(
        SELECT slot_name FROM pg_replication_slots
        WHERE starts_with(slot_name, $1) AND database = current_database() ORDER BY slot_name)",
                                 {kGlobal + "_"}));
}

/* The session of a killed command can hold the slot while it makes it. A walsender ends soon after
 * its worker. One that stays is that of another server. */
void drop_slot(Connection& writer, const std::string& slot)
{
    if (!has(slots_of_followers(writer), slot))
        return;
    try {
        drop_slot(writer, slot, Clock::now() + timeouts::kGlobalSlotReader,
                  "backend_type <> 'walsender'");
    } catch (const ServerError&) {
        const Result other = writer.query(R"(
            SELECT concat(client_addr, ', process ' || pid) FROM pg_replication_slots JOIN pg_stat_activity ON pid = active_pid
            WHERE slot_name = $1 AND backend_type = 'walsender')",
                                          {slot});
        if (other.rows() == 0)
            throw;
        throw Failure("slot " + slot + " on " + writer.server() + " is read by another server (" +
                      other.text(0, 0) +
                      "), which has the same subscription, as after a split\nHINT:  Give both "
                      "servers to snowflake-shard global add: each gets a slot of its own.");
    }
}
