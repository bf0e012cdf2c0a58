#include "base/output.h"
#include "base/quoting.h"
#include "move/obstacles.h"
#include "postgres/row_text.h"

namespace
{

/* Expressions that rows pass when they are written, with functions whose body is text: their names
 * are looked up when they run. The copy and the apply worker have an empty search_path. A body that
 * was parsed by CREATE FUNCTION has none of these names. */
const char* const kExpressions = R"(
WITH written AS (
    SELECT adrelid AS tbl, d.tableoid AS class, d.oid AS object, format('generated column %s.%I', adrelid::regclass, attname) AS title,
           pg_get_expr(adbin, adrelid) AS expression
    FROM pg_attrdef AS d JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum WHERE attgenerated <> ''
    UNION ALL
    SELECT indrelid, 'pg_class'::regclass, indexrelid, format('index %s', indexrelid::regclass),
           concat_ws(', ', pg_get_expr(indexprs, indrelid), pg_get_expr(indpred, indrelid))
    FROM pg_index WHERE indexprs IS NOT NULL OR indpred IS NOT NULL
    UNION ALL
    SELECT conrelid, tableoid, oid, format('constraint %I of table %s', conname, conrelid::regclass), pg_get_expr(conbin, conrelid)
    FROM pg_constraint WHERE contype = 'c' AND conrelid <> 0
)
SELECT tbl::regclass, title, format('SELECT count(ROW(%s)::text)::text FROM (SELECT * FROM ONLY %s LIMIT 100) AS t', expression, tbl::regclass),
       format('ALTER FUNCTION %s SET search_path = %I;', min(p.oid::regprocedure::text), nspname)
FROM written JOIN pg_class AS c ON c.oid = tbl JOIN pg_namespace AS n ON n.oid = relnamespace
JOIN pg_depend AS d ON d.classid = class AND d.objid = object AND refclassid = 'pg_proc'::regclass
JOIN pg_proc AS p ON p.oid = refobjid JOIN pg_language AS l ON l.oid = prolang
WHERE relnamespace = ANY ($1::regnamespace[]) AND relkind = 'r' AND lanname NOT IN ('internal', 'c') AND prosqlbody IS NULL
GROUP BY tbl, title, expression, nspname
ORDER BY tbl, title)";

/* A name that is not found. Other errors are of the rows that are tried, and no obstacle. */
bool is_of_name(const ServerError& error)
{
    for (const char* const sqlstate : {"42883", "42P01", "42703", "42704", "3F000"})
        if (error.sqlstate == sqlstate)
            return true;
    return false;
}

} // namespace

Obstacles find_unqualified_names(Connection& source, const Shards& shards)
{
    const Result expressions = source.query(kExpressions, {schemas_of(shards)});
    Obstacles found;
    for (int i = 0; i < expressions.rows(); i++) {
        source.run("BEGIN READ ONLY; SET LOCAL row_security = off; SET LOCAL statement_timeout = "
                   "'10s'");
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
