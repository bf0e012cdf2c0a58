#include "fleet/locked.h"

#include "base/quoting.h"
#include "postgres/sql_text.h"
#include "sql/sql.h"

Locked find_locked(Connection& connection)
{
    const Result rows = connection.query("SELECT schema, " + as_utf8_sql("holders") + " FROM (" +
                                         locked_schemas_sql + ") AS l");
    Locked locked;
    for (int i = 0; i < rows.rows(); i++)
        locked[rows.text(i, 0)] = "locked by " + visible(rows.text(i, 1));
    return locked;
}
