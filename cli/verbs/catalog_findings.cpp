#include "verbs/catalog_findings.h"

#include "definition/copy.h"
#include "postgres/sql_text.h"
#include "sql/sql.h"

Checks read_checks(Connection& connection)
{
    const Result rows = connection.query(
        "SELECT severity = 'warning' AND NOT starts_with(problem, 'not looked at: '), " +
        as_utf8_sql("object") + ", " + as_utf8_sql("problem") + ", " + as_utf8_sql("hint") +
        " FROM (" + connection.query(checks_sql).text(0, 0) +
        R"() AS c WHERE severity IN ('error', 'warning')
                         ORDER BY severity, object COLLATE "C", problem COLLATE "C")");
    Checks checks;
    for (int i = 0; i < rows.rows(); i++)
        if (rows.flag(i, 0))
            checks.warnings++;
        else
            checks.findings.push_back({"check", connection.address().text(), rows.text(i, 1),
                                       rows.text(i, 2), rows.text(i, 3)});
    return checks;
}

Result find_leftovers(Connection& connection)
{
    return connection.query(leftovers_sql, {connection.address().text(), kCopyPattern});
}

Result find_invalid_indexes(Connection& connection, const Shards& shards)
{
    return connection.query(invalid_indexes_sql, {connection.address().text(), oids_of(shards)});
}

/* DISABLE TRIGGER ALL disables them; so does SET session_replication_role for a session, which
 * leaves no trace. ENABLE TRIGGER ALL would not look at the rows that came meanwhile. A key of a
 * partitioned table has its triggers at the keys of the partitions. */
Result find_disabled_keys(Connection& connection, const Shards& shards)
{
    return connection.query(R"(
        SELECT DISTINCT 'key', $1::text, format('table %s', f.conrelid::regclass),
               format('foreign key %I is not checked: its triggers on table %s are disabled', f.conname, tgrelid::regclass),
               snowflake_internal.told_to(relowner,
                   format('ALTER TABLE %1$s DROP CONSTRAINT %2$I, ADD CONSTRAINT %2$I %3$s; -- it reads all rows, and refuses those that violate the key',
                          f.conrelid::regclass, f.conname, pg_get_constraintdef(f.oid)))
        FROM pg_trigger JOIN pg_constraint AS k ON k.oid = tgconstraint
        JOIN pg_constraint AS f ON f.oid IN (k.oid, k.conparentid)
        JOIN pg_class AS c ON c.oid = f.conrelid
        WHERE tgenabled IN ('D', 'R') AND f.connamespace = ANY ($2::oid[]) AND f.contype = 'f' AND f.conparentid = 0
        ORDER BY 3, 4)",
                            {connection.address().text(), oids_of(shards)});
}
