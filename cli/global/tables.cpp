#include "global/tables.h"

#include <map>

#include "base/timeouts.h"
#include "cutover/waiting.h"
#include "definition/restored.h"
#include "fleet/catalog.h"
#include "postgres/dump.h"
#include "postgres/error_text.h"
#include "postgres/row_text.h"
#include "postgres/session.h"
#include "postgres/trust.h"
#include "replication/needed.h"
#include "replication/owners.h"
#include "replication/publication.h"
#include "sql/sql.h"

namespace
{

struct Object {
    std::string definition;
    std::string make;
    std::string change;
    std::string drop;
};

std::map<std::string, Object> read_objects(Connection& connection, const std::string& table)
{
    const Result rows = connection.query(table_objects_sql, {table});
    std::map<std::string, Object> objects;
    for (int i = 0; i < rows.rows(); i++)
        objects[rows.text(i, 0)] = {as_restored(rows.text(i, 1)), rows.text(i, 2), rows.text(i, 3),
                                    rows.text(i, 4)};
    return objects;
}

/* The definition comes from the owner on the writer. */
std::string told_for_owner(Connection& writer, Connection& follower, const std::string& table)
{
    std::string told;
    for (Connection* const connection : {&follower, &writer})
        if (told.empty())
            told = visible(connection
                               ->query("SELECT snowflake_internal.told_to(relowner, '') FROM "
                                       "pg_class WHERE oid = $1::regclass",
                                       {table})
                               .text(0, 0));
    return told;
}

std::string told(const std::string& owner, const std::string& statement)
{
    return statement.empty() ? "" : owner + statement;
}

/* The name as pg_dump takes it: each part quoted. */
std::string quoted(Connection& connection, const std::string& table)
{
    const Result parts = connection.query(
        "SELECT nspname, relname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = relnamespace "
        "WHERE c.oid = $1::regclass",
        {table});
    return connection.identifier(parts.text(0, 0)) + "." + connection.identifier(parts.text(0, 1));
}

/* An array of SQL. */
std::string oids_of(Connection& connection, const Names& tables)
{
    return connection
        .query("SELECT ARRAY(SELECT name::regclass::oid FROM unnest($1::text[]) AS name)",
               {sql_array(tables)})
        .text(0, 0);
}

const std::string kComment = "snowflake-shard global run, change ";
constexpr std::size_t kLengthOfId = 36; /* a UUID */

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

void lock_and_change(Connection& connection, const std::function<void()>& change)
{
    lock_and_run_naming(connection, Clock::now() + timeouts::kTableLock, change);
}

std::string table_name(Connection& connection, const std::string& given)
{
    try {
        const Result name = connection.query(
            "SELECT format('%I.%I', p[1], p[2]) FROM parse_ident($1) AS p WHERE cardinality(p) = 2",
            {given});
        if (name.rows() > 0)
            return name.text(0, 0);
    } catch (const ServerError& error) {
        if (error.sqlstate != kInvalidParameter)
            throw;
    }
    throw UsageError("\"" + visible(given) + "\" is no name of a table with its schema" +
                     "\nHINT:  Write it as in SQL: public.filters, or 'public.\"My Filters\"'.");
}

bool has_table(Connection& connection, const std::string& table)
{
    return connection.query("SELECT FROM pg_class WHERE oid = to_regclass($1)", {table}).rows() > 0;
}

bool has_rows(Connection& connection, const std::string& table)
{
    return read_rows(connection, table, "SELECT (EXISTS (SELECT FROM ONLY " + table + "))::text", 1)
               .text(0, 0) == "true";
}

Obstacles find_unpublishable(Connection& writer, const std::string& table)
{
    Obstacles found;
    found.read(writer, unpublishable_sql, {table});
    if (!has_table(writer, table))
        found.add(writer.server(), "table " + visible(table) + " is not there",
                  "Make the table on the server of --on, where it is written.");
    for (const Shard& shard : read_shards(writer))
        if (table.compare(0, shard.quoted.size() + 1, shard.quoted + ".") == 0)
            found.add(writer.server(),
                      "table " + visible(table) + " is of shard " + std::to_string(shard.number),
                      "Name a table of another schema: a global table belongs to no shard.");
    return found;
}

std::vector<TableDifference> compare_definitions(Connection& writer, Connection& follower,
                                                 const std::string& table)
{
    const auto wanted = read_objects(writer, table);
    const auto present = read_objects(follower, table);
    const std::string owner = told_for_owner(writer, follower, table);
    std::vector<TableDifference> found;
    for (const auto& [name, object] : wanted) {
        const auto there = present.find(name);
        if (there == present.end())
            found.push_back({name, "it is missing here: " + object.definition,
                             told(owner, object.make), name.compare(0, 7, "column ") == 0});
        else if (there->second.definition != object.definition)
            found.push_back({name,
                             "it is " + there->second.definition + " here, and " +
                                 object.definition + " on " + writer.address().text(),
                             told(owner, object.change), false});
    }
    for (const auto& [name, object] : present)
        if (wanted.count(name) == 0)
            found.push_back({name, "it is only here: " + object.definition, object.drop, false});
    return found;
}

Obstacles find_unmakable(Connection& writer, Connection& follower, const Names& tables)
{
    const std::string oids = oids_of(writer, tables);
    Obstacles found = find_needed_of_tables(writer, follower, oids);
    const Result owners =
        writer.query("SELECT coalesce(array_agg(pg_get_userbyid(relowner)), '{}'), "
                     "coalesce(array_agg(nspname), '{}') FROM pg_class AS c JOIN "
                     "pg_namespace AS n ON n.oid = relnamespace "
                     "WHERE c.oid = ANY ($1::oid[])",
                     {oids});
    found.read(follower, R"(
        SELECT DISTINCT format('role %I, which owns a table of schema %I, may not make it there', rolname, nspname),
               format('GRANT CREATE ON SCHEMA %I TO %I;', nspname, rolname)
        FROM unnest($1::name[], $2::name[]) AS t (owner, schema) JOIN pg_roles AS r ON rolname = owner JOIN pg_namespace AS n ON nspname = schema
        WHERE NOT has_schema_privilege(r.oid, n.oid, 'CREATE'))",
               {owners.text(0, 0), owners.text(0, 1)});
    return found;
}

void make_tables(Connection& writer, Connection& follower, const Names& tables)
{
    find_unmakable(writer, follower, tables).raise_first();
    std::map<std::string, Names> by_owner;
    for (const std::string& table : tables)
        by_owner[writer
                     .query("SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = "
                            "$1::regclass",
                            {table})
                     .text(0, 0)]
            .push_back(quoted(writer, table));
    for (const auto& [owner, names] : by_owner) {
        const std::string definition = dump_tables(writer, names);
        begin_of_owner(follower, owner, timeouts::kTableLock);
        try {
            run_in_session(follower, definition);
            commit_of_owner(follower);
        } catch (const ServerError& error) {
            follower.rollback();
            throw ServerError(error.what() + ("\nThe tables are made with the rights of role " +
                                              visible(owner) + "."),
                              error.sqlstate);
        }
    }
}

void lock_tables(Connection& connection, const std::string& tables)
{
    const Names names = texts_of(connection.query(
        "SELECT oid::regclass FROM pg_class WHERE oid = ANY ($1::oid[]) ORDER BY oid", {tables}));
    if (!names.empty())
        connection.run("LOCK TABLE " + only(names) + " IN ACCESS SHARE MODE");
    const Result unlocked = connection.query(R"(
        SELECT FROM unnest($1::oid[]) AS t (oid) WHERE NOT EXISTS (
            SELECT FROM pg_locks AS l JOIN pg_database AS d ON d.oid = l.database
            WHERE l.relation = t.oid AND datname = current_database() AND pid = pg_backend_pid() AND granted))",
                                             {tables});
    if (unlocked.rows() > 0)
        throw Failure(connection.server() + ": a global table was dropped or renamed "
                                            "meanwhile\nHINT:  snowflake-shard global verify "
                                            "shows it.");
}

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

void run_as(Connection& connection, const std::string& role, const std::string& sql)
{
    try {
        connection.query("SELECT snowflake_internal.run_as_role($1, $2)", {role, sql});
    } catch (const ServerError& error) {
        std::string text = without_text(error.what(), sql.substr(0, sql.find('\n')));
        if (error.sqlstate == kInsufficientPrivilege)
            text += "\nThe SQL works with the rights of role " + visible(role) + ".";
        if (error.sqlstate == kUndefinedTable)
            text += "\nHINT:  Write names with their schema: public.filters.";
        throw ServerError(text, error.sqlstate);
    }
}
