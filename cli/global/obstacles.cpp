#include "global/session.h"

#include "base/output.h"
#include "global/follower.h"
#include "global/publication.h"
#include "global/tables.h"
#include "postgres/decoding.h"
#include "postgres/too_few.h"
#include "postgres/trust.h"
#include "replication/comparison.h"
#include "replication/slots.h"
#include "replication/subscription.h"
#include "replication/trial.h"

namespace
{

/* The owners of the tables on the writer, if this role is no member of them. */
const char* const kNoMember = R"(
SELECT format('role %I is no member of role %I, which owns table %s', current_user, rolname, min(c.oid::regclass::text)),
       CASE WHEN rolsuper THEN 'Connect as a superuser, or give the table to a role that is none.'
            ELSE format('GRANT %I TO %I%s;', rolname, current_user,
                        CASE WHEN current_setting('server_version_num')::integer >= 160000 THEN ' WITH INHERIT TRUE' END) END
FROM unnest($1::text[]) AS t (name) JOIN pg_class AS c ON c.oid = to_regclass(name) JOIN pg_roles AS r ON r.oid = relowner
WHERE NOT pg_has_role(relowner, 'USAGE') GROUP BY rolname, rolsuper)";

/* The schemas that lock_schemas() would not lock. */
const char* const kMayNotLock = R"(
SELECT DISTINCT format('role %I may neither act as the owner of schema %I nor create objects in it', current_user, nspname),
       format('GRANT CREATE ON SCHEMA %I TO %I;', nspname, current_user)
FROM unnest($1::text[]) AS t (name) JOIN pg_class AS c ON c.oid = to_regclass(name) JOIN pg_namespace AS n ON n.oid = relnamespace
JOIN pg_database ON datname = current_database()
JOIN pg_roles AS r ON r.oid = CASE nspowner WHEN 'pg_database_owner'::regrole THEN datdba ELSE nspowner END
WHERE NOT rolsuper AND NOT has_schema_privilege(n.oid, 'CREATE') AND NOT pg_has_role(
    r.oid, CASE WHEN current_setting('server_version_num')::integer >= 160000 THEN 'SET' ELSE 'MEMBER' END))";

Obstacles find_in_table(Connection& writer, Connection& follower, const Subscription& subscription,
                        const std::string& table)
{
    Obstacles found = find_unpublishable(follower, table);
    bool is_comparable = found.empty();
    const std::string place = "table " + visible(table) + ": ";
    for (const TableDifference& one : compare_definitions(writer, follower, table)) {
        found.add(follower.server(), place + visible(one.object) + ": " + visible(one.problem),
                  visible(one.hint));
        is_comparable = is_comparable && !one.is_missing_column;
    }
    found.read(follower, R"(
        SELECT format('table %s: subscription %I writes to it', $1::regclass, subname),
               format('Take the table out of its publication (%s). Then: ALTER SUBSCRIPTION %I REFRESH PUBLICATION;',
                      array_to_string(subpublications, ', '), subname)
        FROM pg_subscription_rel JOIN pg_subscription AS s ON s.oid = srsubid
        WHERE srrelid = $1::regclass AND NOT starts_with(subname, 'snowflake_global_'))",
               {table});
    if (!is_comparable || subscription.tables.count(table) > 0 || !has_rows(follower, table))
        return found;
    if (const std::string difference = compare_table(writer, follower, table); !difference.empty())
        found.add(follower.server(), place + visible(difference),
                  "Make the rows equal, or delete all of them here.");
    return found;
}

/* One REFRESH copies the rows of all new tables, or of none. */
Obstacles find_mixed(Connection& follower, const Subscription& subscription, const Names& tables)
{
    Names filled;
    Names empty;
    for (const std::string& table : tables)
        if (subscription.tables.count(table) == 0)
            (has_table(follower, table) && has_rows(follower, table) ? filled : empty)
                .push_back(table);
    if (subscription.tables.empty() || filled.empty() || empty.empty())
        return {};
    return {
        {follower.server(),
         "table " + visible(filled[0]) + " has rows, and table " + visible(empty[0]) + " has none",
         "Add them by one command each."}};
}

Obstacles find_on_follower(Connection& writer, Connection& follower, const Names& tables,
                           bool trusts_owners)
{
    Obstacles found;
    const std::string server = follower.server();
    const Subscription subscription = find_subscription(follower);
    found.add(subscription.problem);
    if (!subscription.tables.empty() && !has_slot(writer, subscription.slot))
        found.add(server,
                  "subscription " + subscription.name + " has no slot on " + writer.server() +
                      ", or the slot has lost WAL",
                  "global remove --on with these two servers, and add the tables again.");
    if (find_publication(follower).is_there)
        found.add(server, "it has a publication " + kGlobal + " of its own",
                  "If no server follows it: DROP PUBLICATION " + kGlobal + ";");
    require_trusted_schema(follower, kGlobal);
    if (!trusts_owners)
        found.add(find_untrusted_owners(writer, follower, tables));
    Names missing;
    for (const std::string& table : tables)
        if (has_table(follower, table))
            found.add(find_in_table(writer, follower, subscription, table));
        else
            missing.push_back(table);
    found.add(find_unmakable(writer, follower, missing));
    found.add(find_mixed(follower, subscription, tables));
    return found;
}

Obstacles find_on_publisher(Connection& writer, const Names& tables)
{
    Obstacles found;
    found.add(find_missing_to_publish(writer));
    found.add(find_standby_of_any_name(writer));
    found.add(find_refused_plugins(writer));
    found.read(writer, kNoMember, {sql_array(tables)});
    found.add(find_unlockable(writer, tables));
    return found;
}

/* A follower takes a slot and a worker, and one more of each while its rows are copied. The workers
 * of more tables wait for these. On both servers a session of the owner makes or compares a table.
 */
Obstacles find_too_few(Connection& writer, const std::vector<Connection*>& followers)
{
    const auto need = [](std::size_t count) {
        return Need{count, "global add takes " + std::to_string(count)};
    };
    Obstacles found;
    std::size_t slots = 0;
    for (Connection* const follower : followers) {
        const std::size_t workers = find_subscription(*follower).tables.empty() ? 2 : 1;
        slots += workers;
        found.add(::find_too_few(*follower, {}, need(workers), need(workers + 1)));
    }
    found.add(::find_too_few(writer, need(slots), {}, need(1)));
    return found;
}

} // namespace

Obstacles find_unlockable(Connection& writer, const Names& tables)
{
    Obstacles found;
    found.read(writer, kMayNotLock, {sql_array(tables)});
    return found;
}

Obstacles find_obstacles(GlobalSession& session, const GlobalOptions& options, const Names& tables,
                         const Names& added)
{
    Connection& writer = session.writer();
    Obstacles found;
    found.add(find_low_wal_level(writer));
    if (!find_publication(writer).change.id.empty())
        found.add(writer.server(), "a change of global run was not seen on all followers",
                  "Run the same snowflake-shard global run again.");
    if (const Subscription other = find_subscription(writer); !other.name.empty())
        found.add(writer.server(), "it follows another server: subscription " + other.name,
                  "Give the server where the tables are written first in --on.");
    for (const std::string& table : tables)
        found.add(find_unpublishable(writer, table));
    const std::string dsn = dsn_of(writer, options.source);
    std::vector<Connection*> subscribing; /* not of run */
    for (Connection* const follower : session.followers())
        if (!added.empty() || find_subscription(*follower).tables.empty()) {
            found.add(find_missing_rights(writer, *follower, tables, dsn));
            subscribing.push_back(follower);
        }
    if (!subscribing.empty()) {
        found.add(find_on_publisher(writer, tables));
        found.add(find_too_few(writer, subscribing));
    }
    if (!found.empty())
        return found; /* the others compare with these tables */
    for (Connection* const follower : session.followers()) {
        found.add(find_on_follower(writer, *follower, tables, options.trusts_owners));
        if (find_subscription(*follower).tables.empty())
            found.add(try_subscription(*follower, "snowflake_trial", dsn));
    }
    if (!added.empty())
        for (const std::string& slot : other_slots(session))
            found.add(writer.server(),
                      "slot " + slot +
                          " is of a follower that is not given, and that would "
                          "fail at a change of a table that it lacks",
                      "Give all followers. If that one is gone: SELECT "
                      "pg_drop_replication_slot('" +
                          slot + "');");
    return found;
}
