#include "global/follower.h"

#include <algorithm>

#include "base/timeouts.h"
#include "global/change.h"
#include "global/tables.h"
#include "cutover/waiting.h"
#include "postgres/drop_schemas.h"
#include "postgres/settings.h"
#include "postgres/trust.h"
#include "replication/subscription.h"

namespace
{

const std::string kRemoval = "'" + removal_of("%1$I") + "', subname";

/* refuse_writes() makes it like this. 62: BEFORE, FOR EACH STATEMENT, of all four kinds. O: it
 * fires, and not for replicas. */
const std::string kTriggers = R"(
FROM pg_trigger AS t JOIN pg_proc AS p ON p.oid = tgfoid JOIN pg_namespace AS n ON n.oid = pronamespace
WHERE tgname = 'snowflake_global' AND nspname = 'snowflake_global')";

const std::string kTriggerText =
    "SELECT concat_ws(' ', t.oid, tgrelid, tgfoid, tgenabled, tgtype) ";

std::string problem_sql()
{
    return R"(
SELECT format('subscription %I is of role %I, which is neither this role nor a superuser', subname, pg_get_userbyid(subowner)), format()" +
           kRemoval + R"()
FROM pg_subscription WHERE starts_with(subname, $1) AND NOT )" +
           is_trusted("subowner") + " AND " + kOfDatabase + R"(
UNION ALL
SELECT format('subscription %I is not of the publication snowflake_global alone', subname),
       format('ALTER SUBSCRIPTION %I SET PUBLICATION snowflake_global;', subname)
FROM pg_subscription WHERE starts_with(subname, $1) AND subpublications <> '{snowflake_global}' AND )" +
           kOfDatabase + R"(
UNION ALL
SELECT format('subscription %I is the second one', subname), format()" +
           kRemoval + R"()
FROM pg_subscription AS s WHERE starts_with(subname, $1) AND )" +
           kOfDatabase + R"(
AND EXISTS (SELECT FROM pg_subscription AS o WHERE starts_with(o.subname, $1) AND o.subdbid = s.subdbid AND o.oid < s.oid) LIMIT 1)";
}

/* There, or on the writer if it lacks the table; empty if both do. */
std::string owner_of(Connection& writer, Connection& follower, const std::string& table)
{
    for (Connection* const server : {&follower, &writer}) {
        const Result owner = server->query(
            "SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = to_regclass($1)", {table});
        if (owner.rows() > 0)
            return owner.text(0, 0);
    }
    return "";
}

/* The owner of a schema can give its name to another schema, with a table of his own, at any time
 * until the subscription has the table. The owner of the database stands for pg_database_owner. */
void find_untrusted_schema(Connection& follower, const std::string& table, Obstacles& found)
{
    const Result schema = follower.query(
        R"(
        SELECT quote_ident(nspname), quote_ident(pg_get_userbyid(owner))
        FROM parse_ident($1) AS p JOIN pg_namespace AS n ON nspname = p[1] JOIN pg_database AS d ON datname = current_database(),
        LATERAL (SELECT CASE nspowner WHEN 'pg_database_owner'::regrole THEN datdba ELSE nspowner END) AS o (owner) WHERE NOT )" +
            is_trusted("owner"),
        {table});
    if (schema.rows() == 0)
        return;
    const std::string name = visible(schema.text(0, 0));
    const std::string role = visible(schema.text(0, 1));
    found.add(follower.server(),
              "schema " + name + " of table " + visible(table) + " belongs to role " + role +
                  ", who could exchange the table. Before PostgreSQL 16 replication runs code of "
                  "a table with the rights of role " +
                  visible(follower.user()),
              "ALTER TABLE " + visible(table) +
                  " SET SCHEMA ...; to a schema of this role or a superuser, on all servers. Or "
                  "--trust-owners, if role " +
                  role + " may use all rights of role " + visible(follower.user()) + " there.");
}

} // namespace

Subscription find_subscription(Connection& follower)
{
    Subscription found;
    const Result rows = follower.query(R"(
        SELECT subname, subslotname, subenabled, oid, quote_ident(subname), obj_description(oid, 'pg_subscription')
        FROM pg_subscription WHERE starts_with(subname, $1) AND )" +
                                           kOfDatabase + " ORDER BY oid LIMIT 1",
                                       {kGlobal + "_"});
    if (rows.rows() == 0)
        return found;
    found.name = rows.text(0, 0);
    found.slot = rows.text(0, 1);
    found.is_enabled = rows.flag(0, 2);
    found.quoted = rows.text(0, 4);
    found.change = change_of(rows.text(0, 5)).id;
    const Result tables = follower.query(
        "SELECT srrelid::regclass, srsubstate, srrelid FROM pg_subscription_rel WHERE srsubid = "
        "$1::oid",
        {rows.text(0, 3)});
    for (int i = 0; i < tables.rows(); i++)
        found.tables[tables.text(i, 0)] = tables.text(i, 1);
    found.oids = array_of(tables, 2);
    found.problem.read(follower, problem_sql(), {kGlobal + "_"});
    return found;
}

Subscription require_subscription(Connection& follower)
{
    Subscription found = find_subscription(follower);
    found.problem.raise_first();
    return found;
}

std::string new_name(Connection& follower)
{
    return follower
        .query("SELECT $1 || left(replace(gen_random_uuid()::text, '-', ''), 12)", {kGlobal + "_"})
        .text(0, 0);
}

/* connect = false: the command makes the slot, so that a killed one leaves no slot whose name
 * nobody knows. */
Subscription make_subscription(Connection& follower, const std::string& dsn)
{
    const std::string name = new_name(follower);
    follower.run("BEGIN");
    hide_statements(follower);
    follower.run(subscription_sql(follower, name, kGlobal, dsn,
                                  "connect = false, slot_name = '" + name + "'"));
    follower.run("COMMIT");
    return find_subscription(follower);
}

void stop_subscription(Connection& follower, const Subscription& subscription)
{
    follower.run("ALTER SUBSCRIPTION " + subscription.quoted + " DISABLE");
    for (Pause pause; !find_worker(follower, subscription.name).empty();)
        pause();
}

void drop_subscription(Connection& follower, const Subscription& subscription)
{
    drop_subscription(follower, subscription.quoted, Clock::now() + timeouts::kTableLock);
}

/* The function has the rights of the role that writes. Without EXECUTE for PUBLIC no other role can
 * make a trigger with it, and a trigger fires without that right. USAGE of the schema is not needed
 * either. */
void refuse_writes(Connection& follower, const Names& tables, const std::string& writer)
{
    const std::string body =
        "BEGIN RAISE EXCEPTION USING ERRCODE = 'read_only_sql_transaction', MESSAGE = "
        "pg_catalog.format('table %I.%I is a global table, and is not written here', "
        "TG_TABLE_SCHEMA, TG_TABLE_NAME), HINT = " +
        follower.literal("It is written on " + writer + ".") + "; END";
    require_trusted_schema(follower, kGlobal);
    follower.run("CREATE SCHEMA IF NOT EXISTS snowflake_global;"
                 "CREATE OR REPLACE FUNCTION snowflake_global.refuse() RETURNS trigger LANGUAGE "
                 "plpgsql SET search_path = '' AS " +
                 follower.literal(body) +
                 "; REVOKE EXECUTE ON FUNCTION snowflake_global.refuse() FROM PUBLIC;" +
                 keeping_to_owner(kGlobal));
    for (const std::string& table : tables)
        if (!refuses_writes(follower, table))
            follower.run("CREATE OR REPLACE TRIGGER snowflake_global BEFORE INSERT OR UPDATE OR "
                         "DELETE OR TRUNCATE ON " +
                         table +
                         " FOR EACH STATEMENT EXECUTE FUNCTION snowflake_global.refuse(); ALTER "
                         "TABLE ONLY " +
                         table + " ENABLE TRIGGER snowflake_global");
}

Names refusing_tables(Connection& follower)
{
    return texts_of(follower.query("SELECT tgrelid::regclass" + kTriggers + " ORDER BY 1"));
}

Names refusing_triggers(Connection& follower)
{
    return texts_of(
        follower.query(kTriggerText + kTriggers +
                       " AND tgenabled = 'O' AND tgtype = 62 AND tgqual IS NULL AND proname = "
                       "'refuse' AND " +
                       is_trusted("proowner")));
}

bool has_trigger(const Reader& follower, const std::string& table, const Names& triggers)
{
    const Names found = texts_of(follower.query(
        kTriggerText + "FROM pg_trigger AS t WHERE tgname = 'snowflake_global' AND tgrelid = "
                       "$1::regclass",
        {table}));
    return !found.empty() && has(triggers, found[0]);
}

bool refuses_writes(Connection& follower, const std::string& table)
{
    return has_trigger(follower, table, refusing_triggers(follower));
}

void permit_writes(Connection& follower, const Names& tables)
{
    require_trusted_schema(follower, kGlobal);
    Names refusing = refusing_tables(follower);
    for (const std::string& table : tables)
        if (const auto at = std::find(refusing.begin(), refusing.end(), table);
            at != refusing.end()) {
            lock_and_change(follower,
                            [&] { follower.run("DROP TRIGGER snowflake_global ON " + table); });
            refusing.erase(at);
        }
    if (refusing.empty())
        lock_and_change(follower, [&] { drop_schemas(follower, {"snowflake_global"}); });
}

Obstacles find_untrusted_owners(Connection& writer, Connection& follower, const Names& tables)
{
    Obstacles found;
    if (follower.version() >= 160000)
        return found;
    for (const std::string& table : tables) {
        const std::string name = owner_of(writer, follower, table);
        find_untrusted_schema(follower, table, found);
        if (name.empty() ||
            follower.query("SELECT FROM pg_roles WHERE rolname = $1 AND " + is_trusted("oid"),
                           {name})
                    .rows() > 0)
            continue;
        const std::string owner =
            visible(follower.query("SELECT quote_ident($1)", {name}).text(0, 0));
        found.add(follower.server(),
                  "table " + visible(table) + " belongs to role " + owner +
                      ". Before PostgreSQL 16 replication runs code of that role, in triggers or "
                      "CHECK constraints of the table, with the rights of role " +
                      visible(follower.user()),
                  "ALTER TABLE " + visible(table) + " OWNER TO " +
                      visible(follower.query("SELECT quote_ident(current_user)").text(0, 0)) +
                      "; on both servers. Or --trust-owners, if role " + owner +
                      " may use all rights of role " + visible(follower.user()) + " there.");
    }
    return found;
}

Obstacles find_missing_rights(Connection& writer, Connection& follower, const Names& tables,
                              const std::string& dsn)
{
    const Subscription subscription = find_subscription(follower);
    Names owners;
    Names objects;
    bool begins_at = false;
    for (const std::string& table : tables) {
        if (const std::string owner = owner_of(writer, follower, table); !has(owners, owner)) {
            owners.push_back(owner);
            objects.push_back("table " + table);
        }
        /* The role may be unable to read it. */
        begins_at =
            begins_at ||
            (subscription.tables.empty() &&
             follower.query("SELECT pg_relation_size(to_regclass($1)) > 0", {table}).flag(0, 0));
    }
    Obstacles found = find_missing_rights(follower, {sql_array(owners), sql_array(objects)}, dsn);
    if (begins_at)
        found.add(find_missing_advance(follower));
    return found;
}
