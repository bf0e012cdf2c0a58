#include "verbs/catalog_findings.h"

#include "definition/copy.h"

/* Objects of a move whose record is gone, as after a DROP SCHEMA by hand. The names of a move's
 * objects begin with that of its schema, snowflake_move_N; if the schema is there, find_moves()
 * tells more. Subscriptions and slots are of the whole server, and only those of this database are
 * meant. DROP SUBSCRIPTION drops the slot on the other server, too, and fails if it cannot: so the
 * hint takes the slot's name away first. */
Result find_leftovers(Connection& connection)
{
    return connection.query(R"(
        WITH of_moves (kind, name, hint) AS (
            SELECT 'publication', pubname, 'DROP PUBLICATION %I;'
            FROM pg_publication
            UNION ALL
            SELECT 'subscription', subname, 'ALTER SUBSCRIPTION %1$I DISABLE; '
                   'ALTER SUBSCRIPTION %1$I SET (slot_name = NONE); DROP SUBSCRIPTION %1$I;'
            FROM pg_subscription
            WHERE subdbid = (SELECT oid FROM pg_database WHERE datname = current_database())
            UNION ALL
            SELECT 'slot', slot_name, 'SELECT pg_drop_replication_slot(%L);'
            FROM pg_replication_slots
            WHERE database = current_database())
        SELECT 'leftover', $1::text, format('%s %s', kind, name), 'it is of a move that is gone',
               format(hint, name)
        FROM of_moves
        WHERE name ~ '^snowflake_move_[0-9]+(_|$)'
          AND substring(name, '^snowflake_move_[0-9]+') NOT IN (SELECT nspname FROM pg_namespace)
        UNION ALL
        SELECT 'leftover', $1, format('schema %s', nspname), 'a clone was killed, or is running now',
               format('DROP SCHEMA %I; -- the next clone drops it with its contents', nspname)
        FROM pg_namespace
        WHERE nspname ~ $2)",
                            {connection.address().text(), kCopyPattern});
}

/* An index that CREATE INDEX CONCURRENTLY or REINDEX CONCURRENTLY has left behind; not one that is
 * being made. That of a partitioned table is invalid as long as a partition has none. REINDEX
 * CONCURRENTLY makes name_ccnew, and renames the old index to name_ccold when they are swapped: the
 * valid one has the name, so the other is dropped. The progress view hides the tables and indexes
 * of other roles' sessions from a role without pg_read_all_stats, but not the process IDs. Such a
 * session keeps its lock on the table until it ends, so an index that is invalid for good on the
 * same table is found after that. */
Result find_invalid_indexes(Connection& connection, const Shards& shards)
{
    return connection.query(R"(
        SELECT 'index', $1::text, i.oid::regclass::text,
               CASE WHEN i.relkind = 'I' THEN 'it is invalid: a partition has no such index'
                    ELSE 'it is invalid: queries do not use it, and each write maintains it' END,
               CASE WHEN i.relkind = 'I'
                    THEN format('CREATE INDEX on each partition that has none, and ALTER INDEX %s ATTACH PARTITION', i.oid::regclass)
                    WHEN i.relname ~ '_cc(new|old)[0-9]*$' THEN format('DROP INDEX CONCURRENTLY %s;', i.oid::regclass)
                    ELSE format('REINDEX INDEX CONCURRENTLY %1$s; -- or DROP INDEX CONCURRENTLY %1$s;', i.oid::regclass) END
        FROM pg_index AS x JOIN pg_class AS i ON i.oid = x.indexrelid
        WHERE NOT x.indisvalid
          AND i.relnamespace = ANY ($2::oid[])
          AND NOT EXISTS (SELECT FROM pg_stat_progress_create_index AS p JOIN pg_locks AS l USING (pid)
                          WHERE p.datname = current_database() AND l.locktype = 'relation' AND l.database = p.datid
                            AND l.relation = x.indrelid AND l.mode = 'ShareUpdateExclusiveLock')
        ORDER BY 3)",
                            {connection.address().text(), oids_of(shards)});
}

/* DISABLE TRIGGER ALL disables them; so does SET session_replication_role for a session, which
 * leaves no trace. ENABLE TRIGGER ALL would not look at the rows that came meanwhile. A key of a
 * partitioned table has its triggers at the keys of the partitions. */
Result find_disabled_keys(Connection& connection, const Shards& shards)
{
    return connection.query(R"(
        SELECT DISTINCT 'key', $1::text, format('table %s', f.conrelid::regclass),
               format('foreign key %I is not checked: its triggers on table %s are disabled', f.conname, tgrelid::regclass),
               format('ALTER TABLE %1$s DROP CONSTRAINT %2$I, ADD CONSTRAINT %2$I %3$s; -- it reads all rows, and refuses those that violate the key',
                      f.conrelid::regclass, f.conname, pg_get_constraintdef(f.oid))
        FROM pg_trigger
        JOIN pg_constraint AS k ON k.oid = tgconstraint
        JOIN pg_constraint AS f ON f.oid IN (k.oid, k.conparentid)
        WHERE tgenabled IN ('D', 'R') AND f.connamespace = ANY ($2::oid[]) AND f.contype = 'f' AND f.conparentid = 0
        ORDER BY 3, 4)",
                            {connection.address().text(), oids_of(shards)});
}
