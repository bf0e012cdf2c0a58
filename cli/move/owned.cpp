#include "move/replication.h"

#include "cutover/cutover.h"
#include "postgres/trust.h"
#include "replication/publication.h"
#include "replication/subscription.h"

namespace
{

/* pg_subscription and pg_replication_slots have those of all databases. The name of a slot has the
 * database in it: see name_slot(). */
const std::string kTaken = R"(
SELECT format('schema %I is there already: it belongs to role %I', nspname, pg_get_userbyid(nspowner)), CASE
           WHEN n.oid IN ()" +
                           untrusted_schemas("('^' || $1 || '$')") + R"()
               THEN format('If that role has begun a move, connect as that role. Else: DROP SCHEMA %I CASCADE;', nspname)
           ELSE format('It has no record of a move. DROP SCHEMA %I CASCADE;', nspname) END
FROM pg_namespace AS n WHERE nspname = $1
UNION ALL
SELECT format('publication %I of role %I is there already', pubname, pg_get_userbyid(pubowner)), format('DROP PUBLICATION %I;', pubname)
FROM pg_publication WHERE pubname = $1
UNION ALL
SELECT format('subscription %I of role %I is there already', subname, pg_get_userbyid(subowner)),
       format(')" + removal_of("%1$I") +
                           R"(', subname)
FROM pg_subscription WHERE subname = $1 AND )" +
                           kOfDatabase + R"(
UNION ALL
SELECT format('slot %s is there already', slot_name), format('SELECT pg_drop_replication_slot(%L);', slot_name)
FROM pg_replication_slots, pg_database AS d WHERE datname = current_database() AND slot_name = format('%s_%s', $1::text, d.oid))";

/* $1: the name. */
const std::string kPublication = "pubowner AS owner FROM pg_publication WHERE pubname = $1";
/* That of a worker's role is the current role's: see give_to_worker(). */
const std::string kSubscription =
    "CASE WHEN pg_get_userbyid(subowner) = format('%s_%s', subname, subdbid) THEN (SELECT oid FROM "
    "pg_roles WHERE rolname = current_user) ELSE subowner END AS owner FROM pg_subscription WHERE "
    "subname = $1 AND " +
    kOfDatabase;

Named find_named(Connection& connection, const Move& move, const std::string& owner,
                 const std::string& object, const std::string& remedy)
{
    const Result found =
        connection.query("SELECT quote_ident(pg_get_userbyid(owner)), " + is_trusted("owner") +
                             " FROM (SELECT " + owner + ") AS o",
                         {move.name});
    if (found.rows() == 0 || found.flag(0, 1))
        return {found.rows() > 0, ""};
    return {true, object + " " + move.name + " on " + connection.server() + " is of role " +
                      found.text(0, 0) +
                      ", which is neither this role nor a superuser. This removes it: " +
                      move.sql(remedy)};
}

} // namespace

Obstacles find_taken_names(Connection& connection, const Move& move)
{
    Obstacles found;
    found.read(connection, kTaken, {move.name});
    return found;
}

bool Named::is_own() const
{
    if (!problem.empty())
        throw Failure(problem);
    return is_there;
}

Named find_publication(Connection& publisher, const Move& move)
{
    return find_named(publisher, move, kPublication, "publication", "DROP PUBLICATION @move@;");
}

Named find_subscription(Connection& subscriber, const Move& move)
{
    return find_named(subscriber, move, kSubscription, "subscription", removal_of("@move@"));
}

/* A table that is missing is found before the
 * fence, and a table of others by find_foreign_table(). */
void require_own_publication(Connection& publisher, const Move& move)
{
    if (!find_publication(publisher, move).is_own())
        throw MustStartAnew("publication " + move.name + " on " + publisher.server() + " is gone");
    const Result changed = publisher.query(R"(
        SELECT FROM pg_publication AS p WHERE pubname = $1 AND ()" +
                                               kIsForAll + R"(
            OR NOT EXISTS (SELECT FROM pg_publication_rel WHERE prpubid = p.oid)
            OR EXISTS (SELECT FROM pg_publication_rel WHERE prpubid = p.oid AND )" +
                                               kIsPartial + "))",
                                           {move.name});
    if (changed.rows() > 0)
        throw MustStartAnew("publication " + move.name + " on " + publisher.server() +
                            " was changed: it has not all rows and columns of tables that are "
                            "named");
}

std::string find_foreign_table(Connection& subscriber, const Move& move)
{
    const Result found = subscriber.query(R"(
        SELECT srrelid::regclass FROM pg_subscription_rel
        JOIN pg_subscription AS s ON s.oid = srsubid JOIN pg_class AS c ON c.oid = srrelid
        WHERE subname = $1 AND )" + kOfDatabase +
                                              R"(
        AND srrelid <> to_regclass($1 || '.marker') AND NOT (relnamespace = ANY ($2::regnamespace[]) AND relkind = 'r')
        ORDER BY srrelid LIMIT 1)",
                                          {move.name, move.schemas()});
    return found.rows() == 0 ? "" : found.text(0, 0);
}

bool has_found_publication(Connection& subscriber, const Move& move)
{
    return subscriber
               .query(R"(
        SELECT FROM pg_subscription_rel JOIN pg_subscription AS s ON s.oid = srsubid
        WHERE subname = $1 AND )" +
                          kOfDatabase + R"(
        AND srrelid = to_regclass($1 || '.marker'))",
                      {move.name})
               .rows() > 0;
}
