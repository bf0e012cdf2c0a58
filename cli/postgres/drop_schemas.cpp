#include "postgres/drop_schemas.h"

#include "base/quoting.h"
#include "sql/sql.h"

Obstacles find_extensions_in(Connection& connection, const std::string& schemas)
{
    Obstacles found;
    found.read(connection, extensions_in_sql, {schemas});
    return found;
}

/* In the statement before the DROP: CREATE EXTENSION locks no schema, so nothing keeps an extension
 * away that comes between the two. */
void drop_schemas(Connection& connection, const std::vector<std::string>& names)
{
    find_extensions_in(connection, sql_array(names)).raise_first();
    connection.run("DROP SCHEMA IF EXISTS " + joined(names, ", ") + " CASCADE");
}
