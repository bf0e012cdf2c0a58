-- name: unpublishable
-- A partitioned table, or one with children, is several tables: their rows are published under their own names. An unlogged or temporary
-- one is not published.
SELECT format('table %s %s', c.oid::regclass, problem), hint
FROM pg_class AS c, LATERAL (
    SELECT 'is no ordinary table that is logged', 'Only such tables can be global.'
    WHERE relkind <> 'r' OR relpersistence <> 'p'
    UNION ALL
    SELECT 'has a parent or children', 'Only single tables can be global.'
    WHERE EXISTS (SELECT FROM pg_inherits WHERE c.oid IN (inhrelid, inhparent))
    UNION ALL
    SELECT CASE WHEN has_key THEN 'has no replica identity' ELSE 'has neither a primary key nor a replica identity' END,
           CASE WHEN has_key THEN format('ALTER TABLE %s REPLICA IDENTITY DEFAULT;', c.oid::regclass)
                ELSE snowflake_internal.told_to(relowner, format('ALTER TABLE %s ADD PRIMARY KEY (...);', c.oid::regclass)) END
    FROM (SELECT relreplident = 'n' AND EXISTS (SELECT FROM pg_index WHERE indrelid = c.oid AND indisvalid AND indimmediate AND indisprimary)) AS k (has_key)
    WHERE relkind = 'r' AND CASE relreplident
        WHEN 'f' THEN false WHEN 'n' THEN true
        ELSE NOT EXISTS (SELECT FROM pg_index WHERE indrelid = c.oid AND indisvalid
                         AND CASE relreplident WHEN 'd' THEN indisprimary ELSE indisreplident END) END
    UNION ALL
    SELECT format('has primary key %s as replica identity, which is DEFERRABLE: UPDATE and DELETE would fail', indexrelid::regclass),
           format('ALTER TABLE %s REPLICA IDENTITY FULL; or USING INDEX with a unique index that is not deferrable.', c.oid::regclass)
    FROM pg_index WHERE indrelid = c.oid AND relkind = 'r' AND relreplident = 'd' AND indisprimary AND NOT indimmediate
    UNION ALL
    SELECT 'has forced row security', format('ALTER TABLE %s NO FORCE ROW LEVEL SECURITY;', c.oid::regclass)
    WHERE relrowsecurity AND relforcerowsecurity) AS p (problem, hint)
WHERE c.oid = to_regclass($1)

-- name: table_objects
-- An object of a table: its name, its definition, and the statements that make it, change it to this definition, and drop it. An index of a
-- constraint is a part of that. NOT NULL is an object of its own, also from 18 on, where it has a constraint.
WITH t AS (SELECT $1::regclass AS oid),
columns AS (
    SELECT quote_ident(attname) AS name, attnotnull,
           concat(format_type(atttypid, atttypmod),
                  CASE WHEN attcollation <> typcollation THEN ' COLLATE ' || attcollation::regcollation END,
                  ' GENERATED ALWAYS AS (' || CASE WHEN attgenerated <> '' THEN pg_get_expr(adbin, adrelid) END || ') STORED') AS type
    FROM t JOIN pg_attribute ON attrelid = t.oid JOIN pg_type AS y ON y.oid = atttypid
    LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
    WHERE attnum > 0 AND NOT attisdropped)
SELECT 'kind', CASE WHEN relkind <> 'r' THEN 'no ordinary table' WHEN relpersistence = 'p' THEN 'a logged table' ELSE 'an unlogged table' END,
       '', format('ALTER TABLE %s SET LOGGED;', t.oid), ''
FROM t JOIN pg_class AS c ON c.oid = t.oid
UNION ALL
SELECT 'column ' || name, type, format('ALTER TABLE %s ADD COLUMN %s %s;', t.oid, name, type),
       format('ALTER TABLE %s ALTER COLUMN %s TYPE %s;', t.oid, name, type),
       format('ALTER TABLE %s DROP COLUMN %s;', t.oid, name)
FROM t, columns
UNION ALL
SELECT 'NOT NULL of column ' || name, 'NOT NULL', format('ALTER TABLE %s ALTER COLUMN %s SET NOT NULL;', t.oid, name), '',
       format('ALTER TABLE %s ALTER COLUMN %s DROP NOT NULL;', t.oid, name)
FROM t, columns WHERE attnotnull
UNION ALL
SELECT format('constraint %I', conname), definition, made, dropped || ' ' || made, dropped
FROM t JOIN pg_constraint AS k ON conrelid = t.oid CROSS JOIN pg_get_constraintdef(k.oid) AS definition,
LATERAL (SELECT format('ALTER TABLE %s ADD CONSTRAINT %I %s;', t.oid, conname, definition),
                format('ALTER TABLE %s DROP CONSTRAINT %I;', t.oid, conname)) AS s (made, dropped)
WHERE contype IN ('p', 'u', 'c', 'f', 'x')
UNION ALL
SELECT format('index %s', indexrelid::regclass), concat(definition, CASE WHEN NOT indisvalid THEN ' (invalid)' END),
       definition || ';', format('DROP INDEX %s; %s;', indexrelid::regclass, definition),
       format('DROP INDEX %s;', indexrelid::regclass)
FROM t JOIN pg_index ON indrelid = t.oid CROSS JOIN pg_get_indexdef(indexrelid) AS definition
WHERE NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid AND contype IN ('p', 'u', 'x'))
