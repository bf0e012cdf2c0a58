#include "move/rights.h"

#include "postgres/dsn.h"

namespace
{

/* The roles that own the shard and its objects, each with one of these for the hint. By name,
 * because a role has another OID on the subscriber. A role that is missing there is found by the
 * trial of the definition. */
const char* const kOwners = R"(
SELECT coalesce(array_agg(rolname), '{}'), coalesce(array_agg(object), '{}') FROM (
    SELECT rolname, min(pg_describe_object(class, object, 0)) AS object FROM (
        SELECT nspowner, 'pg_namespace'::regclass, oid FROM pg_namespace WHERE nspname = $1
        UNION SELECT relowner, 'pg_class'::regclass, oid FROM pg_class WHERE relnamespace = $2::regnamespace
        UNION SELECT stxowner, 'pg_statistic_ext'::regclass, oid FROM pg_statistic_ext WHERE stxnamespace = $2::regnamespace
        UNION SELECT proowner, 'pg_proc'::regclass, oid FROM pg_proc WHERE pronamespace = $2::regnamespace
        UNION SELECT typowner, 'pg_type'::regclass, oid FROM pg_type WHERE typnamespace = $2::regnamespace) AS o (owner, class, object)
    JOIN pg_roles ON pg_roles.oid = owner GROUP BY rolname) AS owners)";

/* From PostgreSQL 16 on. The worker writes the rows as the role of the move, so that one has to
 * inherit the rights of the owners (USAGE), too. SET is the right that ALTER ... OWNER TO asks for
 * since 16. Membership in a superuser would give away the whole server, so the hint never grants
 * it. */
const char* const kRights = R"(
SELECT format('role %I may not make a subscription', current_user),
       format('GRANT pg_create_subscription TO %I;', current_user)
WHERE NOT pg_has_role('pg_create_subscription', 'USAGE')
UNION ALL
SELECT format('role %I may make no schema in database %I', current_user, current_database()),
       format('GRANT CREATE ON DATABASE %I TO %I;', current_database(), current_user)
WHERE NOT has_database_privilege(current_database(), 'CREATE')
UNION ALL
SELECT format('role %I may not make objects of role %I, and write to them', current_user, rolname),
       CASE WHEN rolsuper THEN format('Move the shard as a superuser. Or give %s, and all that role %I owns in the shard, to a role that is no superuser.', object, rolname)
            ELSE format('GRANT %I TO %I WITH INHERIT TRUE, SET TRUE;', rolname, current_user) END
FROM unnest($1::name[], $2::text[]) AS o (rolname, object) JOIN pg_roles USING (rolname)
WHERE NOT (pg_has_role(oid, 'USAGE') AND pg_has_role(oid, 'SET')))";

} // namespace

Owners read_owners(Connection& home, const Shard& shard)
{
    const Result owners = home.query(kOwners, {shard.schema, shard.quoted});
    return {owners.text(0, 0), owners.text(0, 1)};
}

std::vector<Obstacle> find_missing_rights(Connection& subscriber, Connection& home,
                                          const Move& move, const std::string& dsn)
{
    const Result role =
        subscriber.query("SELECT current_setting('is_superuser'), quote_ident(current_user)");
    if (role.text(0, 0) == "on")
        return {};
    const std::string name = visible(role.text(0, 1));
    if (subscriber.version() < 160000)
        return {{subscriber.server(),
                 "role " + name + " may not make a subscription: before PostgreSQL 16 only a " +
                     "superuser may",
                 "Connect to that server as a superuser, or ALTER ROLE " + name + " SUPERUSER;"}};
    const Owners owners = read_owners(home, move.shard);
    std::vector<Obstacle> found =
        read_obstacles(subscriber, kRights, {owners.names, owners.objects});
    /* password_required is true, so libpqrcv_check_conninfo() looks for the password in the string
     * itself: one in the ~/.pgpass of the server does not count. */
    if (!has_password(dsn))
        found.push_back({subscriber.server(),
                         "a subscription of role " + name +
                             ", which is no superuser, takes a password of the other server",
                         "Give a connection string with a password as --source, or as --target for "
                         "a way back."});
    return found;
}
