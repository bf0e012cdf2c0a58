-- name: leftovers
-- Objects of a move whose record is gone, as after a DROP SCHEMA by hand. The names of a move's objects begin with that of its schema,
-- snowflake_move_N; if the schema is there, find_moves() tells more. Subscriptions and slots are of the whole server, and only those of
-- this database are meant. DROP SUBSCRIPTION drops the slot on the other server, too, and fails if it cannot: so the hint takes the slot's
-- name away first.
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
WHERE nspname ~ $2

-- name: checks
-- A query of all that snowflake_check() finds, made of the functions that it calls. They are in snowflake_internal, where no other role can give
-- the name of one to a function of its own.
SELECT 'SELECT c.* FROM (SELECT snowflake_internal.checked_calls() AS calls OFFSET 0) AS r CROSS JOIN LATERAL ('
       || string_agg(format('SELECT * FROM snowflake_internal.%I(r.calls)', proname), ' UNION ALL ') || ') AS c'
FROM pg_proc AS p JOIN pg_depend AS d ON d.classid = p.tableoid AND d.objid = p.oid AND d.refclassid = 'pg_extension'::regclass
JOIN pg_extension AS e ON e.oid = d.refobjid AND extname = 'snowflake'
WHERE pronamespace = 'snowflake_internal'::regnamespace AND prorettype = 'snowflake_internal.finding'::regtype

-- name: invalid_indexes
-- An index that CREATE INDEX CONCURRENTLY or REINDEX CONCURRENTLY has left behind; not one that is being made. That of a partitioned table
-- is invalid as long as a partition has none. REINDEX CONCURRENTLY makes name_ccnew, and renames the old index to name_ccold when they are
-- swapped: the valid one has the name, so the other is dropped. The progress view hides the tables and indexes of other roles' sessions
-- from a role without pg_read_all_stats, but not the process IDs. Such a session keeps its lock on the table until it ends, so an index
-- that is invalid for good on the same table is found after that.
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
ORDER BY 3

-- name: id_columns
-- Columns with a DEFAULT that makes IDs, and the shard of their schema: the number for which a sequence of the schema is drawn from. A copy of
-- another shard's table (LIKE ... INCLUDING ALL) has the DEFAULTs of that one, and its IDs are of a wrong shard. Where the schema has no such
-- number, or several, it is that of the DEFAULT. A column of a domain over bigint is one, too, also of a domain over such a domain. Partitions are left out, because count_other_ids() reads them with their parent. The last one begins the hint:
-- a query of another role's table runs code of that role while it is planned.
WITH RECURSIVE bigints (typ) AS (
    SELECT 'bigint'::regtype::oid
    UNION ALL
    SELECT t.oid FROM pg_type AS t JOIN bigints ON t.typbasetype = typ),
calls AS MATERIALIZED (SELECT * FROM snowflake_internal.calls()),
own AS (
    SELECT k.schema, min(k.shard) AS shard FROM calls AS k JOIN pg_class AS s ON s.oid = k.seq AND s.relnamespace = k.schema
    WHERE k.is_direct AND k.shard IS NOT NULL
    GROUP BY k.schema HAVING min(k.shard) = max(k.shard))
SELECT c.relnamespace, coalesce(own.shard, k.shard), c.oid, a.attnum, format('%I.%I', n.nspname, c.relname), quote_ident(a.attname),
       CASE WHEN pg_get_userbyid(c.relowner) <> current_user
            THEN format('As role %I, because code of that role can run: ', pg_get_userbyid(c.relowner)) ELSE '' END
FROM calls AS k
JOIN pg_class AS c ON k.classid = 'pg_class'::regclass AND c.oid = k.objid
LEFT JOIN own ON own.schema = c.relnamespace
JOIN pg_namespace AS n ON n.oid = c.relnamespace
JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = k.objsubid
JOIN bigints ON typ = a.atttypid
WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND k.shard IS NOT NULL
ORDER BY 5, 6

-- name: other_ids
-- IDs of other shards in columns of tables, of their children and partitions: the place of the column from 1 on, how many there are and the
-- smallest, if there are any. A query of these tables would run code of their owners while it is planned, so other_ids() reads each of
-- them. Those of a subscription are left out: the rows may have been made at the other side. With publish_via_partition_root the
-- subscription has the parent alone, so nothing below such a table is read, either. The column is looked up by its name, because a child
-- may have it at another attnum. Partitioned and foreign tables have no rows here, and temporary ones may be of another session:
-- other_ids() raises an error for these. OFFSET 0: the catalogues are large, and each is read by its index. MATERIALIZED, because the
-- planner could call it before it joins pg_class. UNION, because a table may have several parents.
WITH RECURSIVE columns AS MATERIALIZED (
    SELECT place, k.tbl, k.shard, name
    FROM unnest($1::oid[], $2::integer[], $3::integer[]) WITH ORDINALITY AS k (tbl, attnum, shard, place)
    CROSS JOIN LATERAL (SELECT attname FROM pg_attribute AS a
                        WHERE attrelid = k.tbl AND a.attnum = k.attnum AND NOT attisdropped OFFSET 0) AS a (name)),
tables (place, tbl) AS (
    SELECT place, tbl FROM columns
    UNION
    SELECT place, i.inhrelid FROM pg_inherits AS i JOIN tables ON i.inhparent = tbl
    WHERE NOT EXISTS (SELECT FROM pg_subscription_rel WHERE srrelid = tbl)),
readable AS MATERIALIZED (
    SELECT place, t.tbl, a.attnum, k.shard
    FROM tables AS t
    JOIN columns AS k USING (place)
    CROSS JOIN LATERAL (SELECT FROM pg_class
                        WHERE oid = t.tbl AND relkind = 'r' AND relpersistence <> 't' OFFSET 0) AS c
    CROSS JOIN LATERAL (SELECT attnum FROM pg_attribute WHERE attrelid = t.tbl AND attname = k.name OFFSET 0) AS a
    WHERE NOT EXISTS (SELECT FROM pg_subscription_rel WHERE srrelid = t.tbl))
SELECT place, sum(o.count), min(o.smallest)
FROM readable CROSS JOIN LATERAL snowflake_internal.other_ids(tbl, attnum, shard, $4::integer) AS o
GROUP BY place HAVING sum(o.count) > 0 ORDER BY place

-- name: counted_keys
-- Keys of schemas that a sequence counts: column, the statement that makes its keys IDs, in how many schemas it is there. $1: OIDs of
-- schemas. A DEFAULT with nextval() depends on its sequence, and so does one that makes IDs: those are left out. Partitions have the keys
-- of their parent. It begins with the sequences, because most columns have none.
WITH counted (tbl, attnum) AS MATERIALIZED (
    SELECT f.adrelid, f.adnum
    FROM pg_sequence AS s
    JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = s.seqrelid AND d.classid = 'pg_attrdef'::regclass
    JOIN pg_attrdef AS f ON f.oid = d.objid
    UNION
    SELECT attrelid, attnum FROM pg_attribute WHERE attidentity <> '')
SELECT format('%I.%I', c.relname, a.attname),
       format('SELECT %s.snowflake_attach(%L, %L);', e.extnamespace::regnamespace, format('%I', c.relname), a.attname),
       count(*)
FROM counted AS k
JOIN pg_class AS c ON c.oid = k.tbl
JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = k.attnum
JOIN pg_extension AS e ON e.extname = 'snowflake'
WHERE c.relnamespace = ANY ($1::oid[]) AND NOT c.relispartition AND a.attinhcount = 0
  AND EXISTS (SELECT FROM pg_index AS i WHERE i.indrelid = c.oid AND i.indisunique AND i.indnkeyatts = 1
              AND i.indkey[0] = a.attnum)
  AND NOT EXISTS (SELECT FROM snowflake_internal.call_of('pg_class'::regclass, c.oid, a.attnum))
GROUP BY c.relname, a.attname, e.extnamespace ORDER BY c.relname COLLATE "C", a.attname COLLATE "C"
