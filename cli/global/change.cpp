#include "global/change.h"

#include "global/tables.h"
#include "postgres/obstacles.h"
#include "postgres/session.h"
#include "postgres/trust.h"
#include "replication/publication.h"

namespace
{

const std::string kComment = "snowflake-shard global run, change ";
constexpr std::size_t kLengthOfId = 36; /* a UUID */

/* The SQL begins with them. They are set again behind it, because the SQL may have changed them,
 * and names are compared as text. */
constexpr const char* kSettings =
    "SET search_path = pg_catalog, pg_temp; SET quote_all_identifiers = off";

/* A role that may not act as the owner has its own rights. */
std::string choose_role(Connection& connection, const std::string& tables)
{
    const Result owners = connection.query(
        R"(
        SELECT DISTINCT rolname, rolname <> current_user AND NOT rolsuper AND pg_has_role(r.oid, $2)
        FROM pg_class AS c JOIN pg_roles AS r ON r.oid = relowner WHERE c.oid = ANY ($1::oid[]))",
        {tables, connection.version() >= 160000 ? "SET" : "MEMBER"});
    std::string list;
    bool is_other = false;
    for (int i = 0; i < owners.rows(); i++) {
        list += (list.empty() ? "" : ", ") + owners.text(i, 0);
        is_other = is_other || owners.flag(i, 1);
    }
    if (!is_other)
        return connection.query("SELECT current_user").text(0, 0);
    if (owners.rows() > 1)
        throw Failure(connection.server() + ": the global tables belong to roles " + visible(list) +
                      "\nHINT:  --role names the one with whose rights the SQL works: the owner of "
                      "the tables that it changes.");
    return list;
}

/* A name can lead to another table by now: a Failure, as if one was dropped. */
void lock_tables(Connection& connection, const std::string& tables, const std::string& role)
{
    const std::string changed =
        "FROM unnest($1::oid[]) AS t (oid) LEFT JOIN pg_class AS c ON c.oid = t.oid "
        "WHERE coalesce(pg_has_role($2, relowner, 'MEMBER'), true)";
    const Names names = texts_of(connection.query("SELECT c.oid::regclass " + changed +
                                                      " AND c.oid IS NOT NULL ORDER BY c.oid",
                                                  {tables, role}));
    if (!names.empty())
        command_session(connection, "LOCK TABLE " + only(names) + " IN SHARE ROW EXCLUSIVE MODE");
    const Result unlocked =
        query_in_session(connection, "SELECT t.oid " + changed + R"( AND NOT EXISTS (
            SELECT FROM pg_locks AS l JOIN pg_database AS d ON d.oid = l.database
            WHERE l.relation = t.oid AND datname = current_database() AND pid = pg_backend_pid() AND granted))",
                         {tables, role});
    if (unlocked.rows() > 0)
        throw Failure(connection.server() + ": a global table was dropped or renamed "
                                            "meanwhile\nHINT:  snowflake-shard global verify "
                                            "shows it.");
}

/* A table gets another schema only from its owner, and under a lock that waits for ours. The owner
 * of the database stands for pg_database_owner. */
void require_kept_names(Connection& connection, const std::string& tables, const std::string& role)
{
    const Result other = connection.query(
        R"(
        SELECT c.oid::regclass, quote_ident(nspname), quote_ident(pg_get_userbyid(owner)), quote_ident($2)
        FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = relnamespace JOIN pg_database ON datname = current_database(),
        LATERAL (SELECT CASE nspowner WHEN 'pg_database_owner'::regrole THEN datdba ELSE nspowner END) AS o (owner)
        WHERE c.oid = ANY ($1::oid[]) AND pg_get_userbyid(owner) <> $2 AND NOT )" +
            is_trusted("owner") + " ORDER BY 1 LIMIT 1",
        {tables, role});
    if (other.rows() > 0)
        throw Failure(connection.server() + ": schema " + visible(other.text(0, 1)) + " of table " +
                      visible(other.text(0, 0)) + " belongs to role " + visible(other.text(0, 2)) +
                      ", who could exchange the table, and the SQL works with the rights of role " +
                      visible(other.text(0, 3)) + "\nHINT:  ALTER SCHEMA " +
                      visible(other.text(0, 1)) + " OWNER TO " + visible(other.text(0, 3)) + ";");
}

/* Code of other roles would have the rights of a superuser. */
void require_own_code(Connection& connection, const std::string& tables, const std::string& role)
{
    Obstacles found;
    found.read(connection, R"(
        SELECT problem, hint FROM unnest($1::oid[]) AS t (oid) JOIN pg_class AS c ON c.oid = t.oid
        JOIN pg_roles AS o ON o.oid = relowner JOIN pg_roles AS r ON r.rolname = $2 AND r.rolsuper, LATERAL (
            SELECT problem, hint FROM snowflake_internal.foreign_code(0, t.oid) WHERE o.rolsuper
            UNION ALL
            SELECT format('table %s belongs to role %I, and its code would run with the rights of superuser %I', t.oid::regclass, o.rolname, $2),
                   'Give the global tables of superusers to a role that is none, on all servers: ALTER TABLE ... OWNER TO ...;'
            WHERE NOT o.rolsuper) AS p WHERE problem IS NOT NULL)",
               {tables, role});
    found.raise_first();
}

} // namespace
std::string comment_of(const PendingChange& change)
{
    return kComment + change.id + (change.sql.empty() ? "" : ": " + change.sql);
}

PendingChange change_of(const std::string& comment)
{
    if (comment.compare(0, kComment.size(), kComment) != 0)
        return {};
    const std::string rest = comment.substr(kComment.size());
    return {rest.substr(0, kLengthOfId),
            rest.size() > kLengthOfId + 2 ? rest.substr(kLengthOfId + 2) : ""};
}

void prepare_change(Connection& connection, const std::string& tables, const std::string& given)
{
    begin_session(connection, given.empty() ? choose_role(connection, tables) : given, "");
}

void begin_change(Connection& connection, const std::string& tables, const std::string& given)
{
    const std::string role = given.empty() ? choose_role(connection, tables) : given;
    begin_session(connection, role,
                  connection.timeouts_sql("SET", "0") + "; " + kSettings + "; BEGIN");
    lock_tables(connection, tables, role);
    require_kept_names(connection, tables, role);
    require_own_code(connection, tables, role);
}

void run_change(Connection& connection, const std::string& sql)
{
    try {
        run_in_session(connection, sql);
        command_session(connection, std::string(kSettings) + "; SET CONSTRAINTS ALL IMMEDIATE");
    } catch (const ServerError& error) {
        const bool lacks_schema = error.sqlstate == kUndefinedTable;
        throw ServerError(error.what() + std::string(lacks_schema ? "\nHINT:  Write names with "
                                                                    "their schema: public.filters."
                                                                  : ""),
                          error.sqlstate);
    }
}
