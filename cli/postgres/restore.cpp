#include "postgres/restore.h"

#include "postgres/error_text.h"
#include "sql/sql.h"

namespace
{

void call(Connection& connection, const std::string& function,
          const std::vector<std::string>& arguments)
{
    try {
        connection.query("SELECT snowflake_internal." + function, arguments);
    } catch (const ServerError& error) {
        throw ServerError(without_text(error.what(), ""), error.sqlstate);
    }
}

} // namespace

std::string sole_owner(Connection& connection, const Shards& shards)
{
    const Result owner = connection.query(sole_owner_sql, {schemas_of(shards)});
    return owner.rows() == 0 ? "" : owner.text(0, 0);
}

Functions functions_of(Connection& connection, const std::string& schema)
{
    const Result functions = connection.query(R"(
        SELECT coalesce(array_agg(oid ORDER BY oid), '{}'), coalesce(array_agg(proowner ORDER BY oid), '{}')
        FROM pg_proc WHERE pronamespace = $1::regnamespace)",
                                              {schema});
    return {functions.text(0, 0), functions.text(0, 1)};
}

void restore(Connection& connection, const std::string& sql, const std::string& sole_owner,
             const std::optional<Functions>& replaced)
{
    connection.run("SAVEPOINT snowflake_restore");
    try {
        if (replaced)
            call(connection, "replace_guarded($1, $2, $3)",
                 {sql, replaced->functions, replaced->owners});
        else
            call(connection, "run_guarded($1)", {sql});
    } catch (const ServerError& error) {
        if (error.sqlstate != kForeignCode)
            throw;
        if (sole_owner.empty())
            throw ServerError(error.what() + ("\nHINT:  " + kOneOwner), kForeignCode);
        connection.run("ROLLBACK TO snowflake_restore");
        call(connection, "run_as_role($1, $2)", {sole_owner, sql});
    }
    connection.run("RELEASE snowflake_restore");
}
