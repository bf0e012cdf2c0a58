-- Steps of snowflake_attach(): obstacles. ALTER TABLE would refuse them one by one, some only after an hour of rewriting:
-- see ATPrepAlterColumnType() and ATExecAlterColumnType() in PostgreSQL's tablecmds.c.

-- The dependents of the type of a narrow column, and theirs: a line that describes it, the object, the statement that
-- drops it (NULL: none), and how far it is from the column.
CREATE FUNCTION snowflake_internal.attach_dependents(scope snowflake_internal.attach_member[])
    RETURNS TABLE (line text, classid oid, objid oid, drop_text text, depth integer)
    LANGUAGE sql STABLE STRICT PARALLEL SAFE ROWS 1 SET search_path = pg_catalog, pg_temp AS $$
-- ALTER TABLE rebuilds indexes, constraints, statistics and the column's own DEFAULT. An owned sequence does
-- not depend on the type. All else that depends on the column must be dropped, and before it its own
-- dependents. Objects of unknown kinds count, too: a later version may have new ones.
WITH RECURSIVE found AS (
    SELECT d.classid, d.objid, 0 AS depth, pg_describe_object('pg_class'::regclass, s.tbl, s.attnum) AS depends_on,
           snowflake_internal.drop_text(d.classid, d.objid) AS drop_text
    FROM unnest($1) AS s
    CROSS JOIN LATERAL snowflake_internal.dependents('pg_class'::regclass, s.tbl, s.attnum) AS d
    LEFT JOIN pg_class AS c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid
    LEFT JOIN pg_attrdef AS f ON d.classid = 'pg_attrdef'::regclass AND f.oid = d.objid
    WHERE s.is_narrow
      AND d.classid NOT IN ('pg_constraint'::regclass, 'pg_statistic_ext'::regclass)
      AND coalesce(c.relkind, 'v') NOT IN ('i', 'I', 'S')
      AND (f.adrelid, f.adnum) IS DISTINCT FROM (s.tbl::oid, s.attnum)
    UNION
    SELECT d.classid, d.objid, o.depth + 1, pg_describe_object(o.classid, o.objid, 0),
           snowflake_internal.drop_text(d.classid, d.objid)
    FROM found AS o
    CROSS JOIN LATERAL snowflake_internal.dependents(o.classid, o.objid, 0) AS d
    WHERE o.drop_text IS NOT NULL
      AND o.depth < 100 -- views and functions can depend on each other in a circle
)
SELECT format('%s depends on %s',
              coalesce('generated ' || pg_describe_object('pg_class'::regclass, f.adrelid, f.adnum),
                       pg_describe_object(o.classid, o.objid, 0)),
              o.depends_on),
       o.classid, o.objid, o.drop_text, o.depth
FROM found AS o
LEFT JOIN (pg_attrdef AS f JOIN pg_attribute AS a ON a.attrelid = f.adrelid AND a.attnum = f.adnum
           AND a.attgenerated <> '')
       ON o.classid = 'pg_attrdef'::regclass AND f.oid = o.objid
WHERE o.drop_text IS DISTINCT FROM ''
$$;

-- Columns of other tables that hold rows of a table with a narrow column, partition keys, foreign keys to partitions,
-- and triggers of foreign keys, one line each.
CREATE FUNCTION snowflake_internal.attach_table_obstacles(scope snowflake_internal.attach_member[]) RETURNS SETOF text
    LANGUAGE sql STABLE STRICT PARALLEL SAFE ROWS 1 SET search_path = pg_catalog, pg_temp AS $$
-- ALTER TABLE does not rewrite a row of the table that is stored in a column of another one.
WITH RECURSIVE row_types AS (
    -- The table's row type, and arrays, domains and composites of it.
    SELECT DISTINCT s.tbl, c.reltype AS type
    FROM unnest($1) AS s JOIN pg_class AS c ON c.oid = s.tbl WHERE s.is_narrow
    UNION
    SELECT r.tbl, coalesce(c.reltype, d.objid)
    FROM row_types AS r
    JOIN pg_depend AS d ON d.refclassid = 'pg_type'::regclass AND d.refobjid = r.type
    LEFT JOIN pg_class AS c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid AND c.relkind = 'c'
    WHERE d.classid = 'pg_type'::regclass OR c.oid IS NOT NULL
)
SELECT format('%s holds rows of table %s', pg_describe_object('pg_class'::regclass, d.objid, d.objsubid), r.tbl)
FROM row_types AS r
JOIN pg_depend AS d ON d.refclassid = 'pg_type'::regclass AND d.refobjid = r.type
                   AND d.classid = 'pg_class'::regclass AND d.objsubid > 0
JOIN pg_class AS c ON c.oid = d.objid AND c.relkind IN ('r', 'p', 'm')
UNION ALL
-- The columns of a partition key depend on the table, and the table does not depend on them.
SELECT format('%s is in the partition key', pg_describe_object('pg_class'::regclass, s.tbl, s.attnum))
FROM unnest($1) AS s
JOIN pg_depend AS d ON d.classid = 'pg_class'::regclass AND d.objid = s.tbl AND d.objsubid = s.attnum
                   AND d.refclassid = 'pg_class'::regclass AND d.refobjid = s.tbl AND d.refobjsubid = 0
WHERE s.is_narrow AND d.deptype = 'i'
UNION ALL
-- ALTER TABLE drops the partition's index, which such a key relies on, with the parent's index before the key.
SELECT format('%s refers to a partition, %s', pg_describe_object('pg_constraint'::regclass, f.oid, 0), s.tbl)
FROM unnest($1) AS s
JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = s.tbl AND d.refobjsubid = s.attnum
                   AND d.classid = 'pg_constraint'::regclass
JOIN pg_constraint AS f ON f.oid = d.objid AND f.contype = 'f' AND f.confrelid = s.tbl AND f.conparentid = 0
JOIN pg_class AS x ON x.oid = f.conindid AND x.relispartition
WHERE s.is_narrow
UNION ALL
-- The triggers of a key that is made again are enabled.
SELECT format('%s is not enabled as usual: ALTER TABLE %s ENABLE TRIGGER %I;',
              pg_describe_object('pg_trigger'::regclass, t.oid, 0), t.tgrelid::regclass, t.tgname)
FROM snowflake_internal.attach_keys($1) AS f JOIN pg_trigger AS t ON t.tgconstraint = f.oid AND t.tgenabled <> 'O'
$$;

-- Columns that ALTER TABLE cannot change as asked for, one line each.
CREATE FUNCTION snowflake_internal.attach_column_obstacles(scope snowflake_internal.attach_member[], seq regclass)
    RETURNS SETOF text
    LANGUAGE sql STABLE CALLED ON NULL INPUT PARALLEL RESTRICTED ROWS 1 SET search_path = pg_catalog, pg_temp AS $$
WITH columns AS MATERIALIZED (
    SELECT s.*, pg_describe_object('pg_class'::regclass, s.tbl, s.attnum) AS described,
           c.relkind, c.reloftype, c.relnamespace, a.atttypid, a.attgenerated
    FROM unnest($1) AS s
    JOIN pg_class AS c ON c.oid = s.tbl
    JOIN pg_attribute AS a ON a.attrelid = s.tbl AND a.attnum = s.attnum
    WHERE s.is_attached OR s.is_narrow
)
-- ALTER TABLE cannot change the type here: it is that of a composite type, of a column on another server, ...
SELECT format('%s is of a typed table: ALTER TYPE %s ALTER ATTRIBUTE %I TYPE bigint CASCADE;', s.described,
              s.reloftype::regtype, s.column_name)
FROM columns AS s WHERE s.is_narrow AND s.reloftype <> 0
UNION ALL
SELECT format('%s is of a foreign table', s.described) FROM columns AS s WHERE s.is_narrow AND s.relkind = 'f'
UNION ALL
SELECT format('%s is of the domain %s', s.described, s.atttypid::regtype)
FROM columns AS s JOIN pg_type AS t ON t.oid = s.atttypid WHERE s.is_narrow AND t.typtype = 'd'
UNION ALL
SELECT format('%s is a generated column', s.described) FROM columns AS s WHERE s.is_narrow AND s.attgenerated <> ''
UNION ALL
-- Only its own session can read a temporary table.
SELECT format('%s is of a temporary table of another session', s.described)
FROM columns AS s WHERE pg_is_other_temp_schema(s.relnamespace)
UNION ALL
-- The type of a column must be changed in all parents at once. With a sequence for each parent, a SELECT from
-- one of them would show IDs of both.
SELECT format(CASE WHEN s.is_narrow THEN '%s is inherited from several parents'
                   ELSE '%s is inherited from %s, too: attach both with the same seq' END, s.described, o.root)
FROM columns AS s
JOIN unnest($1) AS o ON o.tbl = s.tbl AND o.attnum = s.attnum AND o.root <> s.root
JOIN pg_attribute AS a ON a.attrelid = o.root AND a.attname = o.column_name
WHERE s.is_narrow OR $2 IS NULL
   OR EXISTS (SELECT FROM snowflake_internal.call_of('pg_class'::regclass::oid, a.attrelid, a.attnum::integer) AS k
              WHERE k.seq <> $2)
UNION ALL
-- A child's own identity takes no DEFAULT from its parent. The sequence of the column's identity is dropped.
SELECT CASE WHEN u.objid IS NULL THEN format('%s is an identity column', s.described)
            ELSE format('%s depends on %s', pg_describe_object(u.classid, u.objid, u.objsubid),
                        pg_describe_object(d.classid, d.objid, 0)) END
FROM columns AS s
JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = s.tbl AND d.refobjsubid = s.attnum
                   AND d.classid = 'pg_class'::regclass AND d.deptype = 'i'
JOIN pg_class AS q ON q.oid = d.objid AND q.relkind = 'S'
LEFT JOIN pg_depend AS u ON u.refclassid = 'pg_class'::regclass AND u.refobjid = q.oid AND u.deptype = 'n'
WHERE s.is_attached AND (u.objid IS NOT NULL OR s.tbl <> s.root)
$$;

-- A word for a shell, in one line.
CREATE FUNCTION snowflake_internal.shell_quote(word text) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
-- A line break would end the comment that the word is in. pg_dump does not find the changed name, and says so.
SELECT '''' || replace(regexp_replace($1, '[\n\r]+', ' ', 'g'), '''', '''\''''') || ''''
$$;

-- Statements that save the dependents of the columns, drop them and attach; NULL: nothing can be dropped.
CREATE FUNCTION snowflake_internal.attach_clear_text(scope snowflake_internal.attach_member[], arguments text)
    RETURNS text LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
-- If all of it is pasted into psql, the transaction stays open: nothing is lost.
WITH objects AS (
    -- An object can be reached on several ways. The longest tells when to drop it: before the objects it depends on.
    SELECT d.drop_text, max(d.depth) AS depth,
           -- The pattern by which pg_dump -t selects the object. It has no option for a function, or for a table in a
           -- publication.
           CASE WHEN o.type NOT IN ('function', 'procedure', 'publication relation')
                THEN format('%I.%I', o.object_names[1], o.object_names[2]) END AS pattern,
           o.type <> 'index' AS is_selected -- comes with its materialized view
    FROM snowflake_internal.attach_dependents($1) AS d
    CROSS JOIN LATERAL pg_identify_object_as_address(d.classid, d.objid, 0) AS o
    WHERE d.drop_text IS NOT NULL
    GROUP BY d.drop_text, o.type, o.object_names
)
SELECT concat_ws(E'\n',
    '-- 1. In a shell, save the definitions of the dropped objects, with owners, privileges and comments:',
    format('--    pg_dump --schema-only --strict-names%s -f before.sql %s',
           CASE WHEN bool_and(o.pattern IS NOT NULL) THEN
               string_agg(DISTINCT ' -t ' || snowflake_internal.shell_quote(o.pattern) COLLATE "C", '')
                   FILTER (WHERE o.is_selected) END,
           snowflake_internal.shell_quote(current_database())),
    '-- 2. Drop it and attach, in one transaction:',
    'BEGIN;',
    string_agg(o.drop_text, E'\n' ORDER BY o.depth DESC, o.drop_text COLLATE "C"),
    format('SELECT %ssnowflake_attach(%s);', snowflake_internal.prefix(), $2),
    '-- 3. Run from before.sql the statements that create the dropped objects, and no others: the file can have the '
        'old',
    '--    DEFAULT, too. REFRESH materialized views. Then COMMIT;')
FROM objects AS o
HAVING count(*) > 0
$$;

-- Refuses columns with something in the way of the change; lists all of it, with the statements that drop it and attach.
CREATE FUNCTION snowflake_internal.attach_require_clear(
        scope snowflake_internal.attach_member[], seq regclass, arguments text) RETURNS void
    LANGUAGE plpgsql STABLE CALLED ON NULL INPUT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    col CONSTANT snowflake_internal.attach_member := scope[1];
    clear_text CONSTANT text := snowflake_internal.attach_clear_text(scope, arguments);
    lines text;
    by_hand boolean;
BEGIN
    SELECT string_agg(DISTINCT o.line COLLATE "C", E'\n'), bool_or(o.by_hand) INTO lines, by_hand
    FROM (SELECT d.line, d.drop_text IS NULL FROM snowflake_internal.attach_dependents(scope) AS d
          UNION ALL SELECT t.line, true FROM snowflake_internal.attach_table_obstacles(scope) AS t(line)
          UNION ALL
          SELECT t.line, true FROM snowflake_internal.attach_column_obstacles(scope, seq) AS t(line)
         ) AS o(line, by_hand);
    IF lines IS NOT NULL THEN
        RAISE EXCEPTION 'cannot attach column % of table %', quote_ident(col.column_name), col.tbl USING
            ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = lines,
            HINT = CASE WHEN clear_text IS NULL THEN 'Change or drop the listed objects, and attach again.'
                        ELSE concat_ws(E'\n', CASE WHEN by_hand
                            THEN '-- First change or drop by hand the listed objects that are not dropped here.' END,
                            clear_text) END;
    END IF;
END;
$$;
