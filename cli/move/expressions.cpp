#include "base/output.h"
#include "base/quoting.h"
#include "base/timeouts.h"
#include "move/obstacles.h"
#include "postgres/row_text.h"
#include "postgres/sql_text.h"
#include "sql/sql.h"

namespace
{

/* A name that is not found. Other errors are of the rows that are tried, and no obstacle. */
bool is_of_name(const ServerError& error)
{
    for (const char* const sqlstate : {kUndefinedFunction, kUndefinedTable, kUndefinedColumn,
                                       kUndefinedObject, kUndefinedSchema})
        if (error.sqlstate == sqlstate)
            return true;
    return false;
}

} // namespace

Obstacles find_unqualified_names(Connection& source, const Shards& shards)
{
    const Result expressions = source.query(written_expressions_sql, {schemas_of(shards)});
    Obstacles found;
    for (int i = 0; i < expressions.rows(); i++) {
        source.run("BEGIN READ ONLY; SET LOCAL statement_timeout = " +
                   milliseconds_of(timeouts::kExpression));
        try {
            read_rows(source, expressions.text(i, 0), expressions.text(i, 2), 1);
        } catch (const ServerError& error) {
            if (!source.is_alive())
                throw;
            if (is_of_name(error))
                found.add(source.server(),
                          visible(expressions.text(i, 1)) +
                              " calls a function that needs a search_path, which replication "
                              "does not have: " +
                              first_line(error.what()),
                          visible(expressions.text(i, 3)) +
                              " or write the names in its body with their schemas. Do the same in "
                              "all shards: diff compares it");
        }
        source.rollback();
    }
    return found;
}
