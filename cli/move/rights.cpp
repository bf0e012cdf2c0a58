#include "move/rights.h"

#include "base/output.h"
#include "postgres/extension.h"

namespace
{

/* The roles that own the shard and its objects, each with one of these for the hint. By name,
 * because a role has another OID on the subscriber. A role that is missing there is found by the
 * trial of the definition. The owner of the database is the only member of pg_database_owner, which
 * owns schema public. */
const char* const kOwners = R"(
SELECT coalesce(array_agg(rolname), '{}'), coalesce(array_agg(object), '{}') FROM (
    SELECT rolname, min(pg_describe_object(class, object, 0)) AS object FROM (
        SELECT CASE nspowner WHEN 'pg_database_owner'::regrole THEN datdba ELSE nspowner END, 'pg_namespace'::regclass, n.oid
        FROM pg_namespace AS n JOIN pg_database ON datname = current_database() WHERE n.oid = ANY ($1::regnamespace[])
        UNION SELECT relowner, 'pg_class'::regclass, oid FROM pg_class WHERE relnamespace = ANY ($1::regnamespace[])
        UNION SELECT stxowner, 'pg_statistic_ext'::regclass, oid FROM pg_statistic_ext WHERE stxnamespace = ANY ($1::regnamespace[])
        UNION SELECT proowner, 'pg_proc'::regclass, oid FROM pg_proc WHERE pronamespace = ANY ($1::regnamespace[])
        UNION SELECT typowner, 'pg_type'::regclass, oid FROM pg_type WHERE typnamespace = ANY ($1::regnamespace[])) AS o (owner, class, object)
    JOIN pg_roles ON pg_roles.oid = owner GROUP BY rolname) AS owners)";

/* The worker of a table whose owner lacks a right would fail as that owner, and so it does under
 * forced row security (TargetPrivilegesCheck()): the reason, and the statement that mends it. */
const char* const kNotAsOwner = R"(
SELECT reason, statement
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = relnamespace CROSS JOIN quote_ident(pg_get_userbyid(relowner)) AS owner,
LATERAL (SELECT string_agg(privilege, ', ') FROM unnest('{SELECT,INSERT,UPDATE,DELETE,TRUNCATE}'::text[]) AS privilege
         WHERE NOT has_table_privilege(relowner, c.oid, privilege)) AS p (missing),
LATERAL (SELECT format('row security is forced on table %s', c.oid::regclass),
                format('ALTER TABLE %s NO FORCE ROW LEVEL SECURITY;', c.oid::regclass)
         WHERE relrowsecurity AND relforcerowsecurity
         UNION ALL
         SELECT format('the owner of table %s may not use its schema', c.oid::regclass), format('GRANT USAGE ON SCHEMA %I TO %s;', nspname, owner)
         WHERE NOT has_schema_privilege(relowner, n.oid, 'USAGE')
         UNION ALL
         SELECT format('the owner of table %s lacks %s on it', c.oid::regclass, missing), format('GRANT %s ON %s TO %s;', missing, c.oid::regclass, owner)
         WHERE missing IS NOT NULL) AS r (reason, statement)
WHERE relnamespace = ANY ($1::regnamespace[]) AND relkind = 'r' ORDER BY c.oid::regclass::text LIMIT 1)";

/* The owners of all shards, open or not. A temporary schema is no shard. */
const char* const kShardOwners = R"(
SELECT coalesce(array_agg(DISTINCT rolname), '{}')
FROM snowflake_internal.calls() AS k JOIN pg_namespace AS n ON n.oid = k.schema JOIN pg_database ON datname = current_database()
JOIN pg_roles AS r ON r.oid = CASE nspowner WHEN 'pg_database_owner'::regrole THEN datdba ELSE nspowner END
WHERE k.is_direct AND nspname !~ '^pg_(toast_)?temp_')";

/* The roles with these names that gain rights if their code runs as the current role. A role that
 * is missing is an obstacle of its own. */
const char* const kGaining = R"(
SELECT rolname FROM pg_roles WHERE rolname = ANY ($1::name[]) AND NOT rolsuper AND rolname <> current_user)";

/* The expressions that a worker evaluates for each row. An operator stands for its function. */
const char* const kCode = R"(
WITH expressions AS (
    SELECT k.tableoid, k.oid FROM pg_constraint AS k WHERE connamespace = ANY ($1::regnamespace[]) AND contype = 'c'
    UNION ALL
    SELECT i.tableoid, i.oid FROM pg_index AS x JOIN pg_class AS i ON i.oid = indexrelid
    WHERE relnamespace = ANY ($1::regnamespace[]) AND (indexprs IS NOT NULL OR indpred IS NOT NULL)
    UNION ALL
    SELECT d.tableoid, d.oid FROM pg_attrdef AS d JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum
    JOIN pg_class AS c ON c.oid = adrelid WHERE relnamespace = ANY ($1::regnamespace[]) AND attgenerated = 's')
SELECT format('function %s of role %I', p.oid::regprocedure, min(rolname)), min(pg_describe_object(e.tableoid, e.oid, 0))
FROM expressions AS e JOIN pg_depend AS d ON d.classid = e.tableoid AND d.objid = e.oid
LEFT JOIN pg_operator AS o ON refclassid = 'pg_operator'::regclass AND o.oid = refobjid
JOIN pg_proc AS p ON p.oid = CASE WHEN refclassid = 'pg_proc'::regclass THEN refobjid ELSE oprcode END
JOIN pg_roles AS r ON r.oid = proowner
WHERE NOT rolsuper AND rolname <> current_user
GROUP BY p.oid ORDER BY 1)";

/* Why the workers write as the role of the move. Empty: they write as the owners. */
struct Cause {
    std::string text;
    std::string remedy;
};

Cause find_cause(const Connection& subscriber, Connection& home, const Shards& shards)
{
    if (subscriber.version() < 160000)
        return {"as all workers before PostgreSQL 16 do", ""};
    const Result table = home.query(kNotAsOwner, {schemas_of(shards)});
    if (table.rows() == 0)
        return {};
    return {"because " + visible(table.text(0, 0)), visible(table.text(0, 1))};
}

/* names: an array of SQL. */
std::set<std::string> read_gaining(Connection& subscriber, const std::string& names)
{
    std::set<std::string> gaining;
    for (const std::string& name : texts_of(subscriber.query(kGaining, {names})))
        gaining.insert(visible(name));
    return gaining;
}

std::string read_shard_owners(Connection& server)
{
    return has_extension(server) ? server.query(kShardOwners).text(0, 0) : "{}";
}

/* "a, b and 7 more" */
std::string list_of(const std::set<std::string>& names)
{
    constexpr std::size_t kMostNames = 5;
    std::string text;
    std::size_t count = 0;
    for (const std::string& name : names)
        if (count++ < kMostNames)
            text += (text.empty() ? "" : ", ") + name;
    return text +
           (count > kMostNames ? " and " + std::to_string(count - kMostNames) + " more" : "");
}

} // namespace

Owners read_owners(Connection& home, const Shards& shards)
{
    const Result owners = home.query(kOwners, {schemas_of(shards)});
    return {owners.text(0, 0), owners.text(0, 1)};
}

Obstacles find_untrusted_owners(Connection& subscriber, Connection& publisher, Connection& home,
                                const Shards& shards, const Workers& workers)
{
    const Cause cause = find_cause(subscriber, home, shards);
    if (cause.text.empty() || workers.trusts_owners)
        return {};
    const std::set<std::string> gaining = read_gaining(subscriber, read_owners(home, shards).names);
    if (gaining.empty())
        return {};
    std::set<std::string> owners = gaining;
    for (Connection* const server : {&subscriber, &publisher})
        owners.merge(read_gaining(subscriber, read_shard_owners(*server)));
    if (owners.size() == 1)
        return {};
    return {{subscriber.server(),
             "workers would write the rows as role " + visible(subscriber.user()) + ", " +
                 cause.text + ", and so run code of " + list_of(gaining) + " with the rights of " +
                 visible(subscriber.user()) +
                 ". The shards of both servers belong to several roles: " + list_of(owners),
             cause.remedy + (cause.remedy.empty() ? "" : " Or ") + "--trust-owners, if " +
                 list_of(gaining) + " may use all rights of role " + visible(subscriber.user()) +
                 " on that server."}};
}

std::string worker_option(Connection& subscriber, Connection& publisher, Connection& home,
                          const Shards& shards, const Workers& workers)
{
    find_untrusted_owners(subscriber, publisher, home, shards, workers).raise_first();
    const bool has_option = subscriber.version() >= 160000;
    return has_option && !find_cause(subscriber, home, shards).text.empty()
               ? ", run_as_owner = true"
               : "";
}

void tell_of_code(Connection& subscriber, Connection& home, const Shards& shards)
{
    const Cause cause = find_cause(subscriber, home, shards);
    if (cause.text.empty())
        return;
    const Result code = home.query(kCode, {schemas_of(shards)});
    if (code.rows() == 0)
        return;
    const auto more = static_cast<std::size_t>(code.rows()) - 1;
    warn(subscriber.server() + ": workers will write the rows as role " +
         visible(subscriber.user()) + ", " + cause.text + ", and so run " +
         visible(code.text(0, 0)) + " (" + visible(code.text(0, 1)) + ")" +
         (more > 0 ? " and " + count_of(more, "more function") : "") +
         ". Move the shard if you trust that role.");
}
