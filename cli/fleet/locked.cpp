#include "fleet/locked.h"

#include "base/quoting.h"
#include "postgres/sql_text.h"

/* Locks on a schema (DROP SCHEMA), on a table, an index, a TOAST table and its index: REINDEX locks
 * these. A statement of another role is seen with the rights of pg_read_all_stats; an idle session
 * shows its last one. */
Locked find_locked(Connection& connection)
{
    const Result rows = connection.query(R"(
        WITH of_schemas AS (
            SELECT coalesce(t.relnamespace, l.objid) AS schema, l.pid
            FROM pg_locks AS l
            LEFT JOIN pg_index AS i ON i.indexrelid = l.relation
            LEFT JOIN pg_class AS t ON coalesce(i.indrelid, l.relation) IN (t.oid, t.reltoastrelid)
            WHERE l.mode = 'AccessExclusiveLock' AND l.pid IS DISTINCT FROM pg_backend_pid()
              AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
              AND (l.locktype = 'relation' OR l.locktype = 'object' AND l.classid = 'pg_namespace'::regclass)),
        holders AS (
            SELECT DISTINCT schema,
                   CASE WHEN s.pid IS NULL THEN 'a prepared transaction (SELECT * FROM pg_prepared_xacts)'
                        ELSE concat('process ', s.pid, ' (role ' || quote_ident(usename) || ')',
                                    ': ' || NULLIF(NULLIF(regexp_replace(left(query, 200), '\s+', ' ', 'g'), ''), '<insufficient privilege>')) END AS holder
            FROM of_schemas AS s LEFT JOIN pg_stat_activity AS a ON a.pid = s.pid
            WHERE schema IS NOT NULL)
        SELECT schema, )" + as_utf8_sql("string_agg(holder, '; ' ORDER BY holder)") +
                                         " FROM holders GROUP BY schema");
    Locked locked;
    for (int i = 0; i < rows.rows(); i++)
        locked[rows.text(i, 0)] = "locked by " + visible(rows.text(i, 1));
    return locked;
}

std::string lock_timeout_sql(const std::string& timeout, bool is_local)
{
    return "SELECT set_config('lock_timeout', '" + timeout + "', " + (is_local ? "true" : "false") +
           ") WHERE current_setting('lock_timeout') = '0'";
}
