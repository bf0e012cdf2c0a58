-- name: makers
-- The number, schema and owner of each shard, and lines with the objects that make its IDs. $1, $2: their numbers and
-- schemas. If there are many, as the columns of all tables, three are named. A column is removed from the shard without its rows: DROP
-- DEFAULT.
WITH makers AS (
    SELECT DISTINCT s.shard, n.nspname, n.nspowner, k.classid, k.objid, k.objsubid
    FROM unnest($1::integer[], $2::name[]) AS s (shard, schema_name)
    JOIN pg_namespace AS n ON n.nspname = s.schema_name
    JOIN snowflake_internal.calls() AS k
      ON k.schema = n.oid AND k.shard = s.shard AND k.is_direct
), described AS (
    SELECT m.*, i.type, i.identity, coalesce(c.relowner, p.proowner, t.typowner) AS owner,
           CASE WHEN c.oid IS NOT NULL
                THEN format('ALTER TABLE %s ALTER COLUMN %I DROP DEFAULT;', c.oid::regclass, a.attname)
                WHEN t.oid IS NOT NULL THEN format('ALTER DOMAIN %s DROP DEFAULT;', i.identity)
                ELSE format('DROP %s %s;', upper(i.type), i.identity) END AS removal,
           row_number() OVER of_schema AS n, count(*) OVER (PARTITION BY m.shard, m.nspname) AS count
    FROM makers AS m
    CROSS JOIN LATERAL pg_identify_object(m.classid, m.objid, m.objsubid) AS i
    LEFT JOIN pg_class AS c ON m.classid = 'pg_class'::regclass AND c.oid = m.objid
    LEFT JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = m.objsubid
    LEFT JOIN pg_proc AS p ON m.classid = 'pg_proc'::regclass AND p.oid = m.objid
    LEFT JOIN pg_type AS t ON m.classid = 'pg_type'::regclass AND t.oid = m.objid
    WINDOW of_schema AS (PARTITION BY m.shard, m.nspname ORDER BY m.classid, m.objid, m.objsubid)
)
SELECT shard, quote_ident(nspname) AS schema, quote_ident(pg_get_userbyid(nspowner)) AS owner,
       string_agg(format(E'\n    %I: %s %s of role %I. To remove it: %s', nspname, type, identity,
                         pg_get_userbyid(owner), removal), '' ORDER BY n) FILTER (WHERE n <= 3)
       || CASE WHEN max(count) > 3 THEN format(E'\n    %I: and %s more', nspname, max(count) - 3) ELSE '' END AS objects
FROM described GROUP BY shard, nspname, nspowner

-- name: broken_following
-- A row for each problem of the server that follows. The name is that of name_slot(). LEFT JOIN, because a slot that is gone is one.
-- wal_status = 'lost' is looked at before active, because nobody can read such a slot; 'unreserved' says that the next checkpoint can
-- remove WAL that it needs.
SELECT problem, slot_name
FROM (SELECT format('%s_%s', $1::text, oid) AS name FROM pg_database WHERE datname = current_database()) AS n
LEFT JOIN pg_replication_slots AS s ON s.slot_name = name
CROSS JOIN LATERAL (
    SELECT CASE WHEN slot_name IS NULL THEN 'slot ' || name || ' is gone'
                WHEN wal_status = 'lost' THEN 'slot ' || name || ' has lost WAL'
                WHEN NOT active THEN 'it does not read slot ' || name
                WHEN behind < 0 THEN 'it is ahead by ' || pg_size_pretty(-behind) || ', as after a failover: changes of here are not sent until then'
                WHEN wal_status = 'unreserved' OR greatest(behind, kept) > 1e9
                    THEN 'it is behind by ' || pg_size_pretty(behind) || ', and its slot keeps ' || pg_size_pretty(kept) || ' of WAL' END
    FROM pg_wal_lsn_diff(pg_current_wal_lsn(), confirmed_flush_lsn) AS behind,
         pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn) AS kept) AS p (problem)
WHERE problem IS NOT NULL

-- name: unsubscribed
-- The tables of a set which the apply worker of its subscription passes over. $1: the record, $2: the schemas. Those that have come with the
-- set have the trigger of the fence. A table that is being copied ('i', 'd' ...) waits for ever, because its rows are here.
SELECT format('subscription %I lacks %s of the set, and passes over changes of these: %s', subname,
              CASE count WHEN 1 THEN '1 table' ELSE count || ' tables' END, names),
       CASE WHEN is_copied THEN 'Rows were to be copied once more (copy_data = true). The set has to be copied anew: docs/moves.md, "Failover".'
            ELSE CASE WHEN subenabled THEN '' ELSE format('ALTER SUBSCRIPTION %I ENABLE; ', subname) END
                 || format('ALTER SUBSCRIPTION %I REFRESH PUBLICATION WITH (copy_data = false);', subname) END
FROM pg_subscription AS s
JOIN pg_database AS d ON d.oid = subdbid AND datname = current_database()
CROSS JOIN LATERAL (
    SELECT count(*), bool_or(srsubstate IS NOT NULL),
           string_agg(c.oid::regclass::text, ', ' ORDER BY c.oid) FILTER (WHERE n <= 3) || CASE WHEN count(*) > 3 THEN ' ...' ELSE '' END
    FROM (SELECT c.oid, srsubstate, row_number() OVER (ORDER BY c.oid) AS n
          FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = relnamespace
          LEFT JOIN pg_subscription_rel ON srsubid = s.oid AND srrelid = c.oid
          WHERE relkind = 'r' AND srsubstate IS DISTINCT FROM 'r'
            AND (nspname = $1 AND relname = 'marker'
                 OR nspname = ANY ($2::name[]) AND EXISTS (SELECT FROM pg_trigger WHERE tgrelid = c.oid AND tgname = 'snowflake_move'))) AS c
    ) AS t (count, is_copied, names)
WHERE subname = $1 AND count > 0

-- name: locked_schemas
-- Locks on a schema (DROP SCHEMA), on a table, an index, a TOAST table and its index: REINDEX locks these. A statement of another role is
-- seen with the rights of pg_read_all_stats; an idle session shows its last one.
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
SELECT schema, string_agg(holder, '; ' ORDER BY holder) AS holders FROM holders GROUP BY schema

-- name: outside_children
-- Partitions and children of tables of the schemas $1 that are in another schema, also of such ones; not temporary tables, whose session has
-- their rows. $2: schemas of all shards. $1 and $2 are OIDs. A row for each shard that has some: its schema, the problem, and the statements that
-- bring them into the schema, or end the tie to the table of another shard.
WITH RECURSIVE outside (schema, parent, child) AS (
    SELECT p.relnamespace, inhparent, inhrelid
    FROM pg_inherits JOIN pg_class AS p ON p.oid = inhparent JOIN pg_class AS c ON c.oid = inhrelid
    WHERE p.relnamespace = ANY ($1::oid[]) AND c.relnamespace <> p.relnamespace AND c.relkind IN ('r', 'p', 'f') AND c.relpersistence <> 't'
    UNION
    SELECT schema, inhparent, inhrelid
    FROM outside JOIN pg_inherits ON inhparent = child JOIN pg_class AS c ON c.oid = inhrelid
    WHERE c.relnamespace <> schema),
told AS (
    SELECT schema, format('table %s %s table %s', child::regclass, CASE WHEN relispartition THEN 'is a partition of' ELSE 'inherits from' END,
                          parent::regclass) AS title,
           CASE WHEN relnamespace <> ALL ($2::oid[]) THEN format('ALTER TABLE %s SET SCHEMA %I;', child::regclass, nspname)
                WHEN relispartition THEN format('ALTER TABLE %s DETACH PARTITION %s;', parent::regclass, child::regclass)
                ELSE format('ALTER TABLE %s NO INHERIT %s;', child::regclass, parent::regclass) END AS statement
    FROM outside JOIN pg_class AS c ON c.oid = child JOIN pg_namespace AS n ON n.oid = schema)
SELECT schema, format('%s, in another schema%s: clones do not have it, and it does not move with the shard', min(title COLLATE "C"),
                      ' (and ' || NULLIF(count(*) - 1, 0) || ' more)'),
       string_agg(statement, ' ' ORDER BY title COLLATE "C")
FROM told GROUP BY schema ORDER BY schema
