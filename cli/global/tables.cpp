#include "global/tables.h"

#include <map>

#include "base/timeouts.h"
#include "cutover/waiting.h"
#include "definition/restored.h"
#include "fleet/catalog.h"
#include "postgres/dump.h"
#include "postgres/row_text.h"
#include "postgres/session.h"
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

std::map<std::string, Object> read_objects(const Reader& reader, const std::string& table)
{
    const Result rows = reader.query(table_objects_sql, {table});
    std::map<std::string, Object> objects;
    for (int i = 0; i < rows.rows(); i++)
        objects[rows.text(i, 0)] = {as_restored(rows.text(i, 1)), rows.text(i, 2), rows.text(i, 3),
                                    rows.text(i, 4)};
    return objects;
}

/* The definition comes from the owner on the writer. */
std::string told_for_owner(const Reader& writer, const Reader& follower, const std::string& table)
{
    std::string told;
    for (const Reader* const reader : {&follower, &writer})
        if (told.empty())
            told = visible(reader
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
std::string quoted_parts(Connection& connection, const std::string& table)
{
    const Result parts = connection.query(
        "SELECT nspname, relname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = relnamespace "
        "WHERE c.oid = $1::regclass",
        {table});
    return connection.identifier(parts.text(0, 0)) + "." + connection.identifier(parts.text(0, 1));
}

/* An array of SQL. */
std::string array_of_oids(Connection& connection, const Names& tables)
{
    return connection
        .query("SELECT ARRAY(SELECT name::regclass::oid FROM unnest($1::text[]) AS name)",
               {sql_array(tables)})
        .text(0, 0);
}

} // namespace

Result Reader::query(const std::string& sql, const std::vector<std::string>& parameters) const
{
    return is_in_session ? query_in_session(connection, sql, parameters)
                         : connection.query(sql, parameters);
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

bool has_table(const Reader& reader, const std::string& table)
{
    return reader.query("SELECT oid FROM pg_class WHERE oid = to_regclass($1)", {table}).rows() > 0;
}

bool has_rows(Connection& connection, const std::string& table)
{
    return read_rows(connection, table, "SELECT (EXISTS (SELECT FROM ONLY " + table + "))::text", 1)
               .text(0, 0) == "true";
}

Obstacles find_unpublishable(const Reader& writer, const std::string& table)
{
    Obstacles found;
    const std::string server = writer.connection.server();
    const Result problems = writer.query(unpublishable_sql, {table});
    for (int i = 0; i < problems.rows(); i++)
        found.add(server, visible(problems.text(i, 0)), visible(problems.text(i, 1)));
    if (!has_table(writer, table))
        found.add(server, "table " + visible(table) + " is not there",
                  "Make the table on the server of --on, where it is written.");
    for (const Shard& shard : read_shards(writer.connection))
        if (table.compare(0, shard.quoted.size() + 1, shard.quoted + ".") == 0)
            found.add(server,
                      "table " + visible(table) + " is of shard " + std::to_string(shard.number),
                      "Name a table of another schema: a global table belongs to no shard.");
    return found;
}

std::vector<TableDifference> compare_definitions(const Reader& writer, const Reader& follower,
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
                                 object.definition + " on " + writer.connection.address().text(),
                             told(owner, object.change), false});
    }
    for (const auto& [name, object] : present)
        if (wanted.count(name) == 0)
            found.push_back({name, "it is only here: " + object.definition, object.drop, false});
    return found;
}

Obstacles find_unmakable(Connection& writer, Connection& follower, const Names& tables)
{
    const std::string oids = array_of_oids(writer, tables);
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
            .push_back(quoted_parts(writer, table));
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
