#include "verbs/in_shard.h"

#include "base/quoting.h"
#include "postgres/error_text.h"
#include "postgres/extension.h"
#include "sql/sql.h"

void run_in_shard(Connection& connection, const Shard& shard, const std::string& sql)
{
    try {
        connection.query("SELECT snowflake_internal.run_as_owner($1::oid, $2)", {shard.oid, sql});
    } catch (const ServerError& error) {
        throw ServerError(without_text(error.what(), sql.substr(0, sql.find('\n'))),
                          error.sqlstate);
    }
}

std::string path_alone(Connection& connection, const Shard& shard, const std::string& sql)
{
    return connection
        .query("SELECT snowflake_internal.path_of_statement($1::oid, $2)", {shard.oid, sql})
        .text(0, 0);
}

std::map<std::string, std::string> find_foreign_code(Connection& connection,
                                                     const std::vector<Shard>& shards)
{
    const Result rows = connection.query(
        "SELECT n.oid, f.problem, f.hint FROM pg_namespace AS n CROSS JOIN LATERAL "
        "snowflake_internal.foreign_code(n.oid, true) AS f WHERE n.oid = ANY ($1::oid[]) AND "
        "f.problem IS NOT NULL",
        {oids_of(shards)});
    std::map<std::string, std::string> problems;
    for (int i = 0; i < rows.rows(); i++)
        problems[rows.text(i, 0)] =
            visible(rows.text(i, 1)) + "\nHINT:  " + visible(rows.text(i, 2));
    return problems;
}

namespace
{

/* The arguments of columns_as_owner() and rows_as_owner(). */
std::string arguments_of(Connection& connection, const Shard& shard, const std::string& sql,
                         const Parameters& parameters)
{
    std::string arguments = shard.oid + "::oid, " + connection.literal(sql);
    for (const std::string& parameter : parameters)
        arguments += ", " + parameter + "::bigint";
    return arguments;
}

} // namespace

std::vector<Column> read_columns(Connection& connection, const Shard& shard, const std::string& sql,
                                 const Parameters& parameters)
{
    const Result rows =
        connection.query("SELECT name, type FROM snowflake_internal.columns_as_owner(" +
                         arguments_of(connection, shard, sql, parameters) + ")");
    std::vector<Column> columns;
    for (int i = 0; i < rows.rows(); i++)
        columns.push_back({rows.text(i, 0), static_cast<unsigned int>(rows.number(i, 1))});
    if (columns.empty())
        throw Failure("the query has no columns");
    return columns;
}

std::string rows_sql(Connection& connection, const Shard& shard, const std::string& sql,
                     const Parameters& parameters, std::size_t columns)
{
    /* A function that returns records takes the types of its columns from the query. */
    std::string list;
    for (std::size_t i = 1; i <= columns; i++)
        list += (i == 1 ? "c" : ", c") + std::to_string(i) + " text";
    return "SELECT * FROM snowflake_internal.rows_as_owner(" +
           arguments_of(connection, shard, sql, parameters) + ") AS r (" + list + ")";
}

void reopen_if_lost(Connection& connection)
{
    try {
        if (!connection.is_alive())
            connection.reopen();
    } catch (const Failure&) {
        /* The error of the statement that lost it is told, and says more. */
    }
}

namespace
{

/* search_path leaves out a schema without the right. A member of its owner works with the rights of
 * that. */
std::string missing_right(Connection& connection, const Shard& shard)
{
    const Result found = connection.query(R"(
        SELECT format(E'\nDETAIL:  Role %1$I has no right USAGE on schema %2$I, so no object of it is found.'
                      '\nHINT:  GRANT USAGE ON SCHEMA %2$I TO %1$I;', current_user, nspname)
        FROM pg_namespace AS n WHERE oid = $1::oid AND NOT has_schema_privilege(oid, 'USAGE')
        AND NOT pg_has_role(nspowner, 'MEMBER'))",
                                          {shard.oid});
    return found.rows() == 0 ? "" : visible(found.text(0, 0), "\n");
}

std::string hint_of(const Result& remedy)
{
    return remedy.is_null(0, 0) ? "" : "\nHINT:  " + visible(remedy.text(0, 0));
}

} // namespace

/* search_path has no schema but the shard's: behind it, DROP TABLE IF EXISTS would find a table of
 * another schema in each shard that lacks one of that name. */
std::string explained(const ServerError& error, Connection& connection, const Shard& shard)
{
    std::string text = without_text(error.what(), "DECLARE snowflake_rows ");
    if (connection.is_alive() &&
        (error.sqlstate == kUndefinedFunction || error.sqlstate == kUndefinedTable))
        text += missing_right(connection, shard);
    if (connection.is_alive() && error.sqlstate == kInsufficientPrivilege)
        text += hint_of(connection.query(readers_past_policies_sql, {shard.oid, text}));
    if (connection.is_alive() && ((error.sqlstate == kUndefinedFunction &&
                                   text.find("function snowflake_") != std::string::npos) ||
                                  (error.sqlstate == kUndefinedTable &&
                                   text.find("relation \"snowflake_") != std::string::npos)))
        text += "\nsearch_path has the shard's schema alone: write " +
                extension_schema(connection) + ".snowflake_...";
    return text;
}
