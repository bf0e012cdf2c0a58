#include "verbs/in_shard.h"

#include "base/quoting.h"
#include "postgres/cursor.h"
#include "postgres/error_text.h"
#include "postgres/extension.h"

std::map<std::string, std::string> find_session_problems(Connection& connection,
                                                         const std::vector<Shard>& shards)
{
    const Result rows =
        connection.query("SELECT n.oid, s.problem, s.hint FROM pg_namespace AS n CROSS JOIN "
                         "LATERAL snowflake_internal.session_problem(n.oid) AS s "
                         "WHERE n.oid = ANY ($1::oid[]) AND s.problem IS NOT NULL",
                         {oids_of(shards)});
    std::map<std::string, std::string> problems;
    for (int i = 0; i < rows.rows(); i++)
        problems[rows.text(i, 0)] =
            visible(rows.text(i, 1)) + "\nHINT:  " + visible(rows.text(i, 2));
    return problems;
}

namespace
{

void require_worker(Connection& connection, const Shard& shard)
{
    try {
        begin_in_shard(connection, shard, "");
    } catch (const ServerError& error) {
        if (error.sqlstate == kInsufficientResources || !connection.is_alive())
            throw Failure(error.what());
    }
}

} // namespace

void require_workers(Connection& first, std::list<Connection>& more, const Shard& shard)
{
    require_worker(first, shard);
    for (Connection& connection : more)
        require_worker(connection, shard);
}

void begin_in_shard(Connection& connection, const Shard& shard, const std::string& commands)
{
    connection.query("SELECT snowflake_internal.session_begin($1::oid, $2 || format('; SET "
                     "lock_timeout = %L', current_setting('lock_timeout')))",
                     {shard.oid, commands});
}

void commit_in_shard(Connection& connection)
{
    connection.query("SELECT snowflake_internal.session_run('COMMIT')");
}

namespace
{

void call(Connection& connection, const std::string& call, const std::string& sql)
{
    try {
        connection.query(call, {sql});
    } catch (const ServerError& error) {
        throw ServerError(without_text(error.what(), sql.substr(0, sql.find('\n'))),
                          error.sqlstate);
    }
}

} // namespace

void run_in_shard(Connection& connection, const std::string& sql)
{
    call(connection, "SELECT snowflake_internal.session_script($1)", sql);
}

void run_alone_in_shard(Connection& connection, const std::string& sql)
{
    call(connection, "CALL snowflake_internal.session_alone($1)", sql);
}

std::vector<Column> open_in_shard(Connection& connection, const std::string& sql,
                                  const Parameters& parameters)
{
    std::string arguments = connection.literal(sql);
    for (const std::string& parameter : parameters)
        arguments += ", " + parameter + "::bigint";
    const Result rows = connection.query(
        "SELECT name, type FROM snowflake_internal.session_query(" + arguments + ")");
    std::vector<Column> columns;
    for (int i = 0; i < rows.rows(); i++)
        columns.push_back({rows.text(i, 0), static_cast<unsigned int>(rows.number(i, 1))});
    if (columns.empty())
        throw Failure("the query has no columns");
    return columns;
}

void read_in_shard(Connection& connection, const std::vector<Column>& columns,
                   const std::function<void(std::vector<Row> rows)>& take)
{
    /* A function that returns records takes the types of its columns from the query. */
    std::string list;
    for (std::size_t i = 1; i <= columns.size(); i++)
        list += (i == 1 ? "c" : ", c") + std::to_string(i) + " text";
    const auto fetch = [&](std::size_t count) {
        return "SELECT * FROM snowflake_internal.session_fetch(" + std::to_string(count) +
               ") AS r (" + list + ")";
    };
    read_cursor(connection, fetch, columns, take);
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

/* search_path leaves out a schema without the right. */
std::string missing_right(Connection& connection, const Shard& shard)
{
    const Result found = connection.query(R"(
        SELECT format(E'\nDETAIL:  Role %1$I has no right USAGE on schema %2$I, so no object of it is found.'
                      '\nHINT:  GRANT USAGE ON SCHEMA %2$I TO %1$I;', pg_get_userbyid(nspowner), nspname)
        FROM pg_namespace WHERE oid = $1::oid AND NOT has_schema_privilege(nspowner, oid, 'USAGE'))",
                                          {shard.oid});
    return found.rows() == 0 ? "" : visible(found.text(0, 0), "\n");
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
    if (connection.is_alive() && ((error.sqlstate == kUndefinedFunction &&
                                   text.find("function snowflake_") != std::string::npos) ||
                                  (error.sqlstate == kUndefinedTable &&
                                   text.find("relation \"snowflake_") != std::string::npos)))
        text += "\nsearch_path has the shard's schema alone: write " +
                extension_schema(connection) + ".snowflake_...";
    return text;
}
