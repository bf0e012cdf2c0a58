-- Steps of snowflake_attach(): which columns change, in whose tables, under which locks, and the change itself.

CREATE FUNCTION snowflake_internal.attach_scope(tbl regclass, attnum smallint, widens boolean DEFAULT false)
    RETURNS snowflake_internal.attach_member[]
    LANGUAGE sql STABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
-- From the column up and down its table's inheritance tree, and along foreign keys to the columns that
-- refer to it, until nothing is added. A column that refers to an ID must be able to hold one, and so must
-- one that refers to that column. A wide column may lie between two narrow ones. The column that it refers to
-- itself is not reached: a bigint may refer to an integer.
WITH RECURSIVE reached AS (
    (SELECT a.attrelid, a.attnum, a.attname FROM pg_attribute AS a WHERE a.attrelid = $1 AND a.attnum = $2
     UNION ALL
     SELECT o.tbl, o.attnum, o.column_name FROM snowflake_internal.own_referrers($1, $2) AS o WHERE $3)
    UNION
    SELECT a.attrelid, a.attnum, a.attname
    FROM reached AS r
    CROSS JOIN LATERAL (
        -- Through pg_depend: pg_constraint has no index on confrelid.
        SELECT c.conrelid AS relid, k.referring AS attnum, NULL::name AS attname
        FROM pg_depend AS d
        JOIN pg_constraint AS c ON c.oid = d.objid AND c.contype = 'f' AND c.confrelid = r.attrelid
        CROSS JOIN LATERAL unnest(c.confkey, c.conkey) AS k(referred_to, referring)
        WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = r.attrelid AND d.refobjsubid = r.attnum
          AND d.classid = 'pg_constraint'::regclass AND k.referred_to = r.attnum
        UNION ALL
        SELECT i.inhrelid, NULL, r.attname FROM pg_inherits AS i WHERE i.inhparent = r.attrelid
        UNION ALL
        SELECT i.inhparent, NULL, r.attname FROM pg_inherits AS i WHERE i.inhrelid = r.attrelid
    ) AS n
    JOIN pg_attribute AS a ON a.attrelid = n.relid AND (a.attnum = n.attnum OR a.attname = n.attname)
                          AND a.attnum > 0 AND NOT a.attisdropped
), tree AS (
    -- ALTER TABLE changes the type at the root of a tree, and in all members. A member of two trees has a
    -- row for each. Each lookup uses an index: a tree can have thousands of partitions.
    SELECT r.attrelid AS root, r.attrelid, r.attnum, r.attname
    FROM reached AS r
    WHERE NOT EXISTS (SELECT FROM pg_inherits AS i
                      JOIN pg_attribute AS p ON p.attrelid = i.inhparent AND p.attname = r.attname AND p.attnum > 0
                      WHERE i.inhrelid = r.attrelid)
    UNION
    SELECT t.root, a.attrelid, a.attnum, a.attname
    FROM tree AS t
    JOIN pg_inherits AS i ON i.inhparent = t.attrelid
    JOIN pg_attribute AS a ON a.attrelid = i.inhrelid AND a.attname = t.attname AND a.attnum > 0
)
SELECT array_agg((t.root, t.attrelid, t.attnum, t.attname, k.is_attached, k.is_narrow, k.new_type)::snowflake_internal.attach_member
                 ORDER BY k.is_attached DESC, t.attrelid <> t.root, t.root, t.attrelid, t.attnum)
FROM tree AS t
JOIN pg_attribute AS a ON a.attrelid = t.attrelid AND a.attnum = t.attnum
JOIN pg_type AS y ON y.oid = a.atttypid
CROSS JOIN LATERAL (
    SELECT t.root = $1 AND t.attname = (SELECT a.attname FROM pg_attribute AS a
                                        WHERE a.attrelid = $1 AND a.attnum = $2) AS is_attached,
           y.typoutput IN ('int4out'::regproc, 'int2out'::regproc) -- a domain's is that of its base type
           OR a.atttypid IN ('integer[]'::regtype, 'smallint[]'::regtype) AS is_narrow,
           CASE y.typcategory WHEN 'A' THEN 'bigint[]' ELSE 'bigint' END AS new_type
) AS k
$$;
COMMENT ON FUNCTION snowflake_internal.attach_scope IS
    'the columns that snowflake_attach() reaches: first the column itself, then those of children and partitions, '
    'and those that refer to it by foreign keys; if asked for, also those that refer to it by their names alone';

CREATE FUNCTION snowflake_internal.attach_require_owner(scope snowflake_internal.attach_member[]) RETURNS void
    LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    col CONSTANT snowflake_internal.attach_member := scope[1];
    others text;
BEGIN
    SELECT string_agg(DISTINCT format('table %s belongs to %s', s.tbl, c.relowner::regrole) COLLATE "C", E'\n')
    INTO others
    FROM unnest(scope) AS s JOIN pg_class AS c ON c.oid = s.tbl
    WHERE (s.is_attached OR s.is_narrow) AND NOT pg_has_role(c.relowner, 'USAGE');
    IF others IS NOT NULL THEN
        RAISE EXCEPTION 'must be owner of every table that is to be changed with column % of table %',
            quote_ident(col.column_name), col.tbl USING
            ERRCODE = 'insufficient_privilege',
            DETAIL = others,
            HINT = 'A role that is a member of all these owners can attach it.';
    END IF;
END;
$$;
COMMENT ON FUNCTION snowflake_internal.attach_require_owner IS
    'refuses columns in tables of other owners';

CREATE FUNCTION snowflake_internal.attach_lock(scope snowflake_internal.attach_member[]) RETURNS boolean
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    unlocked text;
BEGIN
    -- By OID, so that no two sessions wait for each other. The other tables of foreign keys are locked, too,
    -- as ALTER TABLE would do later; it needs no privilege for that, LOCK TABLE does. The locks that are
    -- held are compared, not the names: a table may have been renamed in between.
    SELECT string_agg(format('ONLY %s', c.oid::regclass), ', ' ORDER BY c.oid) INTO unlocked
    FROM (SELECT s.tbl::oid FROM unnest(scope) AS s WHERE s.is_attached OR s.is_narrow
          UNION
          SELECT e.relid
          FROM unnest(scope) AS s
          JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = s.tbl AND d.refobjsubid = s.attnum
                             AND d.classid = 'pg_constraint'::regclass
          JOIN pg_constraint AS f ON f.oid = d.objid AND f.contype = 'f'
          CROSS JOIN LATERAL (VALUES (f.conrelid), (f.confrelid)) AS e(relid)
          WHERE s.is_narrow AND has_table_privilege(e.relid, 'UPDATE, DELETE, TRUNCATE')) AS l(relid)
    JOIN pg_class AS c ON c.oid = l.relid AND c.relkind IN ('r', 'p')
    WHERE c.oid NOT IN (SELECT k.relation FROM pg_locks AS k
                        WHERE k.pid = pg_backend_pid() AND k.locktype = 'relation' AND k.mode = 'AccessExclusiveLock'
                            AND k.granted
                          AND k.database = (SELECT b.oid FROM pg_database AS b WHERE b.datname = current_database()));
    IF unlocked IS NOT NULL THEN
        EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', unlocked);
    END IF;
    RETURN unlocked IS NOT NULL;
END;
$$;
COMMENT ON FUNCTION snowflake_internal.attach_lock IS
    'locks the tables that are to be changed; false: all were locked before';

CREATE FUNCTION snowflake_internal.attach_largest(scope snowflake_internal.attach_member[]) RETURNS bigint
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    col CONSTANT snowflake_internal.attach_member := scope[1];
    member record;
    found record;
    largest bigint;
    nulls bigint := 0;
BEGIN
    FOR member IN
        SELECT s.tbl, s.attnum, c.relkind FROM unnest(scope) AS s JOIN pg_class AS c ON c.oid = s.tbl
        WHERE s.is_attached AND c.relkind <> 'p'
    LOOP
        IF member.relkind = 'f' THEN
            RAISE NOTICE 'foreign table % was not looked at for its largest ID', member.tbl;
            CONTINUE;
        END IF;
        SELECT e.* INTO found FROM snowflake_internal.column_end(member.tbl, member.attnum, 9223372036854775807) AS e;
        largest := greatest(largest, found.largest);
        nulls := nulls + found.nulls;
    END LOOP;
    IF nulls > 0 THEN
        RAISE EXCEPTION 'column % of table % contains null values', quote_ident(col.column_name), col.tbl USING
            ERRCODE = 'not_null_violation',
            DETAIL = format('Rows without an ID: %s.', nulls),
            HINT = format('Give each of them a number: UPDATE %s SET %I = ... WHERE %2$I IS NULL;',
                          col.tbl, col.column_name);
    END IF;
    RETURN largest;
END;
$$;
COMMENT ON FUNCTION snowflake_internal.attach_largest IS
    'the largest value of the column, NULL: no rows; an error if there are rows without one';

CREATE FUNCTION snowflake_internal.attach_alter(scope snowflake_internal.attach_member[], default_text text)
    RETURNS void
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    step record;
    started timestamptz;
    rewritten text;
BEGIN
    -- One ALTER TABLE for each tree of tables, with all its columns in it, so that each table is written
    -- once. Foreign keys are checked again when either of their tables is written.
    FOR step IN
        SELECT s.root,
               string_agg(DISTINCT format('ALTER COLUMN %I TYPE %s', s.column_name, s.new_type) COLLATE "C", ', ')
                   FILTER (WHERE s.is_narrow) AS widening,
               string_agg(DISTINCT format('ALTER COLUMN %1$I SET NOT NULL, ALTER COLUMN %1$I SET DEFAULT %2$s',
                                          s.column_name, default_text), ', ')
                   FILTER (WHERE s.is_attached) AS attaching,
               (SELECT CASE WHEN count(*) = 0 THEN 'no partitions'
                            ELSE format('%s%s, %s', CASE WHEN count(*) > 1 THEN format('%s tables, ', count(*)) END,
                                        pg_size_pretty(sum(pg_table_size(c.oid))),
                                        CASE WHEN min(c.reltuples) < 0 THEN 'never analyzed'
                                             ELSE format('about %s rows', sum(c.reltuples)::bigint) END) END
                FROM pg_class AS c
                WHERE c.relkind = 'r'
                    AND c.oid IN (SELECT m.tbl FROM unnest(scope) AS m WHERE m.root = s.root AND m.is_narrow)) AS size
        FROM unnest(scope) AS s
        WHERE s.is_attached OR s.is_narrow
        GROUP BY s.root
        ORDER BY s.root
    LOOP
        started := clock_timestamp();
        IF step.widening IS NOT NULL THEN
            RAISE NOTICE 'rewriting table %: %', step.root, step.size;
        END IF;
        EXECUTE format('ALTER TABLE %s %s', step.root, concat_ws(', ', step.widening, step.attaching));
        IF step.widening IS NOT NULL THEN
            RAISE NOTICE 'table % rewritten in % s', step.root,
                round(extract(epoch FROM clock_timestamp() - started), 1);
            rewritten := concat_ws(', ', rewritten, step.root::text);
        END IF;
    END LOOP;
    IF rewritten IS NOT NULL THEN
        RAISE NOTICE 'open sessions can fail on the changed columns until they reconnect' USING
            DETAIL = 'A PL/pgSQL function that has read one ends with "type of parameter ... '
                     'does not match that when preparing the plan", '
                     'and a prepared SELECT with "cached plan must not change result type".',
            HINT = format('After the commit: ANALYZE %s; and reconnect.', rewritten);
    END IF;
END;
$$;
COMMENT ON FUNCTION snowflake_internal.attach_alter(snowflake_internal.attach_member[], text) IS
    'the change itself: types, NOT NULL and DEFAULT, with a NOTICE before and after each rewriting, and one about '
    'the sessions that must reconnect';
