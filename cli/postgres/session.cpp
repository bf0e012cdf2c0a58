#include "postgres/session.h"

#include <limits>

#include "base/quoting.h"
#include "postgres/cursor.h"
#include "postgres/error_text.h"

std::map<std::string, std::string> find_session_problems(Connection& connection,
                                                         const Shards& shards)
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

void begin_session(Connection& connection, const std::string& role, const std::string& commands)
{
    connection.query(std::string("SELECT snowflake_internal.session_of_role($1, $2 ") +
                         kWithLockTimeout + ")",
                     {role, commands});
}

void command_session(Connection& connection, const std::string& commands)
{
    connection.query("SELECT snowflake_internal.session_run($1)", {commands});
}

void commit_session(Connection& connection)
{
    command_session(connection, "COMMIT");
}

void in_session(Connection& connection, const std::string& role, const std::function<void()>& work)
{
    connection.run("BEGIN");
    try {
        begin_session(connection, role, "BEGIN");
        work();
        commit_session(connection);
        connection.run("COMMIT");
    } catch (const Failure&) {
        connection.rollback();
        throw;
    }
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

void run_in_session(Connection& connection, const std::string& sql)
{
    call(connection, "SELECT snowflake_internal.session_script($1)", sql);
}

void run_alone_in_session(Connection& connection, const std::string& sql)
{
    call(connection, "CALL snowflake_internal.session_alone($1)", sql);
}

std::vector<Column> open_in_session(Connection& connection, const std::string& sql,
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

namespace
{

/* A function that returns records takes the types of its columns from the query. */
std::string fetch_sql(const std::vector<Column>& columns, std::size_t count)
{
    std::string list;
    for (std::size_t i = 1; i <= columns.size(); i++)
        list += (i == 1 ? "c" : ", c") + std::to_string(i) + " text";
    return "SELECT * FROM snowflake_internal.session_fetch(" + std::to_string(count) + ") AS r (" +
           list + ")";
}

} // namespace

void read_in_session(Connection& connection, const std::vector<Column>& columns,
                     const std::function<void(std::vector<Row> rows)>& take)
{
    const auto fetch = [&](std::size_t count) { return fetch_sql(columns, count); };
    read_cursor(connection, fetch, columns, take);
}

Result query_in_session(Connection& connection, const std::string& sql,
                        const Parameters& parameters)
{
    std::string text; /* in one pass: a value can have the text $1, too */
    for (std::size_t i = 0; i < sql.size(); i++)
        if (sql[i] == '$' && i + 1 < sql.size() && sql[i + 1] >= '1' && sql[i + 1] <= '9')
            text += connection.literal(parameters.at(static_cast<std::size_t>(sql[++i] - '1')));
        else
            text += sql[i];
    constexpr int kAll = std::numeric_limits<int>::max();
    const std::vector<Column> columns = open_in_session(connection, text, {});
    Result rows = connection.query(fetch_sql(columns, kAll));
    command_session(connection, "CLOSE snowflake_rows");
    return rows;
}

void comment_in_session(Connection& connection, const std::string& catalog, const std::string& name,
                        const std::string& comment)
{
    connection.query("SELECT snowflake_internal.session_comment($1::regclass, $2, $3)",
                     {catalog, name, comment});
}

void create_schema(Connection& connection, const std::string& name)
{
    connection.query("SELECT snowflake_internal.session_create_schema($1)", {name});
}

void rename_schema(Connection& connection, const std::string& name, const std::string& new_name)
{
    connection.query("SELECT snowflake_internal.session_rename_schema($1, $2)", {name, new_name});
}

void make_definition(Connection& connection, const std::vector<std::string>& schemas,
                     const std::string& sql)
{
    for (const std::string& schema : schemas)
        create_schema(connection, schema);
    run_in_session(connection, sql);
}
