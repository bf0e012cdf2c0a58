-- Giving a column native IDs: its own sequence, NOT NULL and a DEFAULT, whatever it had before.
--
-- snowflake_attach() first looks at everything, then locks, looks again, and only then changes: what
-- is refused is refused before a row is touched. Its steps are functions of their own, in the parts
-- after this one.
--
-- All run with the caller's rights, in the caller's transaction. In a statement, a table appears as
-- regclass and a role as regrole, which quote themselves, any other name through %I or %L. The
-- extension's schema is never part of a format string: its name may hold a %.

-- snowflake_attach('schema.table' [, 'column' [, shard 0..8191]])
--
--   42501  not the owner of the table, or of one that refers to it; no right to make the sequence
--   42809  a view, a foreign table, a system catalogue, a partition, an inherited column
--   42703, 42804, 428C9   no such column; not bigint, integer or smallint; a generated column
--   55000  no shard; attached with another one; something in the way, listed; a value so large that
--          new IDs would not be above it within snowflake.max_drift
--   42710, 22003          the shard is another schema's; is none
--   23502, 25001, 25006   NULLs in the column; isolation above READ COMMITTED; read-only
--
-- Progress is told by NOTICEs: the size before each rewriting, the time after it.
CREATE FUNCTION snowflake_attach(tbl regclass, column_name name DEFAULT 'id', shard integer DEFAULT NULL) RETURNS void
    LANGUAGE plpgsql VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE
    SET search_path = pg_catalog, pg_temp
    SET row_security = off -- a row that a policy hides has an ID, too: better an error than a lower maximum
AS $$
DECLARE
    given CONSTANT integer := shard;
    rel pg_class;
    col pg_attribute;
    described text; -- the column, for messages
    present record; -- the native call that the column has already
    target record;  -- the shard and the epoch that it gets
    claimed record;
    old record;     -- the sequence that it owns, and what else uses that
    sequence regclass;
    listed text;
    largest bigint;
    nulls bigint;
    step record;
    started timestamptz;
BEGIN
    -- Everything is looked at twice, before and under the locks: what is refused need not wait for
    -- them, and what another session did while we waited is seen: that it attached the table, moved
    -- or renamed it, gave it a foreign key or a view.
    LOOP
        col := snowflake_internal.attach_column(tbl, column_name);
        SELECT * INTO rel FROM pg_class AS c WHERE c.oid = tbl;
        described := format('column %I of table %s', column_name, tbl);

        PERFORM snowflake_internal.require_read_committed(
            'snowflake_attach'::text, concat_ws(', ', quote_literal(tbl::text), quote_literal(column_name), given));

        SELECT * INTO present FROM snowflake_internal.call_of('pg_class'::regclass::oid, tbl::oid, col.attnum::integer) AS k;
        IF FOUND AND col.atttypid NOT IN ('integer'::regtype, 'smallint'::regtype) THEN
            IF given IS NOT NULL AND given IS DISTINCT FROM present.shard THEN
                RAISE EXCEPTION '% is attached already, with %', described,
                                coalesce('shard ' || present.shard, 'a shard that is no constant') USING
                    ERRCODE = 'object_not_in_prerequisite_state',
                    DETAIL = format('Asked for is shard %s.', given),
                    HINT = format('To change it: ALTER TABLE %1$s ALTER COLUMN %2$I DROP DEFAULT; SELECT snowflake_attach(%1$L, %2$L, %3$s);',
                                  tbl, column_name, given);
            END IF;
            RAISE NOTICE '% is attached already: %, sequence %', described,
                coalesce('shard ' || present.shard, 'a shard that is no constant'),
                coalesce(present.seq::regclass::text, 'none that is constant') || coalesce(', through ' || present.function::regprocedure, '');
            RETURN;
        END IF;

        SELECT * INTO old FROM snowflake_internal.attach_old_sequence(tbl, col.attnum) AS o;
        -- A serial column's sequence is used on, unless others draw from it: they want serial numbers.
        sequence := CASE WHEN old.sharers IS NULL THEN old.seq END;
        IF sequence IS NULL AND NOT has_schema_privilege(rel.relnamespace, 'CREATE') THEN
            RAISE EXCEPTION 'permission denied for schema %', rel.relnamespace::regnamespace USING
                ERRCODE = 'insufficient_privilege',
                DETAIL = format('The sequence of %s is to be made in it.', described),
                HINT = format('GRANT CREATE ON SCHEMA %s TO %I;', rel.relnamespace::regnamespace, current_user);
        END IF;

        SELECT string_agg(DISTINCT format('table %s belongs to %s', s.member, c.relowner::regrole) COLLATE "C", E'\n') INTO listed
        FROM snowflake_internal.attach_scope(tbl, col.attnum) AS s JOIN pg_class AS c ON c.oid = s.member
        WHERE (s.is_attached OR s.is_narrow) AND NOT pg_has_role(c.relowner, 'USAGE');
        IF listed IS NOT NULL THEN
            RAISE EXCEPTION 'must be owner of every table that is to be changed with %', described USING
                ERRCODE = 'insufficient_privilege', DETAIL = listed,
                HINT = 'A role that is a member of all these owners, or a superuser, can attach it.';
        END IF;

        SELECT string_agg(o.line, E'\n' ORDER BY o.line COLLATE "C") INTO listed
        FROM snowflake_internal.attach_obstacles(tbl, col.attnum) AS o(line);
        IF listed IS NOT NULL THEN
            RAISE EXCEPTION 'cannot attach %', described USING
                ERRCODE = 'object_not_in_prerequisite_state', DETAIL = listed,
                HINT = 'Drop what stands in the way, and make it again after snowflake_attach() in the same transaction.';
        END IF;

        -- From here on others may have to wait for us. The shard's number first, then the tables:
        -- whoever holds a table waits for nothing but tables.
        SELECT a.shard, a.epoch_ms, rel.relnamespace INTO target
        FROM snowflake_internal.attach_shard(tbl, column_name, given) AS a;
        IF claimed IS DISTINCT FROM target THEN
            PERFORM snowflake_internal.claim_shard(target.shard, n.nspname) FROM pg_namespace AS n WHERE n.oid = rel.relnamespace;
            claimed := target;
        END IF;

        -- By OID, so that no two sessions wait for each other. The other ends of foreign keys are
        -- locked by ALTER TABLE, which needs no privilege for that; LOCK does. What counts is what is
        -- held, not what was named: a table may have been renamed in between.
        SELECT string_agg(format('ONLY %s', c.oid::regclass), ', ' ORDER BY c.oid) INTO listed
        FROM (SELECT s.member::oid FROM snowflake_internal.attach_scope(tbl, col.attnum) AS s WHERE s.is_attached OR s.is_narrow
              UNION
              SELECT e.relid
              FROM snowflake_internal.attach_scope(tbl, col.attnum) AS s
              JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = s.member
                                 AND d.refobjsubid = s.member_attnum AND d.classid = 'pg_constraint'::regclass
              JOIN pg_constraint AS f ON f.oid = d.objid AND f.contype = 'f'
              CROSS JOIN LATERAL (VALUES (f.conrelid), (f.confrelid)) AS e(relid)
              WHERE s.is_narrow AND has_table_privilege(e.relid, 'UPDATE, DELETE, TRUNCATE')) AS l(relid)
        JOIN pg_class AS c ON c.oid = l.relid AND c.relkind IN ('r', 'p')
        WHERE c.oid NOT IN (SELECT k.relation FROM pg_locks AS k
                            WHERE k.pid = pg_backend_pid() AND k.locktype = 'relation' AND k.mode = 'AccessExclusiveLock' AND k.granted
                              AND k.database = (SELECT b.oid FROM pg_database AS b WHERE b.datname = current_database()));
        EXIT WHEN listed IS NULL;
        EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', listed);
    END LOOP;

    -- The largest ID of all children and partitions. An index finds it, unless there are NULLs to count.
    EXECUTE format('SELECT max(%1$I)::bigint, %2$s FROM %3$s', column_name,
                   CASE WHEN col.attnotnull THEN '0' ELSE format('count(*) FILTER (WHERE %I IS NULL)', column_name) END, tbl)
    INTO largest, nulls;
    IF nulls > 0 THEN
        RAISE EXCEPTION '% contains null values', described USING
            ERRCODE = 'not_null_violation',
            DETAIL = format('Rows without an ID: %s.', nulls),
            HINT = format('Give them one, or delete them: DELETE FROM %s WHERE %I IS NULL;', tbl, column_name);
    END IF;
    PERFORM snowflake_internal.require_reach(tbl, column_name, largest, target.epoch_ms);

    -- Said before it is gone. A child has its parent's DEFAULT, or one of its own.
    FOR step IN
        SELECT s.member, pg_get_expr(f.adbin, f.adrelid) AS expression
        FROM snowflake_internal.attach_scope(tbl, col.attnum) AS s
        JOIN pg_attrdef AS f ON f.adrelid = s.member AND f.adnum = s.member_attnum
        LEFT JOIN pg_attrdef AS r ON r.adrelid = tbl AND r.adnum = col.attnum
        WHERE s.is_attached
          AND (s.member = tbl OR pg_get_expr(f.adbin, f.adrelid) IS DISTINCT FROM pg_get_expr(r.adbin, r.adrelid))
          AND NOT EXISTS (SELECT FROM pg_depend AS d WHERE d.classid = 'pg_attrdef'::regclass AND d.objid = f.oid
                          AND d.refclassid = 'pg_class'::regclass AND d.refobjid = sequence)
        ORDER BY s.member
    LOOP
        RAISE NOTICE 'column % of table % had DEFAULT %', quote_ident(column_name), step.member, step.expression;
    END LOOP;
    IF old.sharers IS NOT NULL THEN
        RAISE NOTICE 'sequence % stays as it is, because of %', old.seq, old.sharers;
    END IF;

    -- Privileges of a serial column's sequence stay as they are. A new one may be drawn from by all who
    -- may insert: from an identity they could, and without the right their INSERTs would fail.
    IF sequence IS NOT NULL THEN
        EXECUTE snowflake_internal.reshape_text(sequence);
        listed := snowflake_internal.attach_inserters(tbl, col.attnum, sequence);
        IF listed IS NOT NULL THEN
            RAISE NOTICE 'sequence % may not be used by % who may INSERT into %', sequence, listed, tbl USING
                HINT = format('GRANT USAGE ON SEQUENCE %s TO %s;', sequence, listed);
        END IF;
    ELSE
        sequence := snowflake_internal.attach_new_sequence(tbl, column_name);
        listed := snowflake_internal.attach_inserters(tbl, col.attnum, sequence);
        IF listed IS NOT NULL THEN
            EXECUTE format('GRANT USAGE ON SEQUENCE %s TO %s', sequence, listed);
            RAISE NOTICE 'USAGE on sequence % is granted to % who may INSERT into %', sequence, listed, tbl;
        END IF;
    END IF;
    -- Old serial numbers lie long before now, read as IDs; this is for a clock that steps back, and for
    -- IDs of a moment ago. A negative number is below every ID.
    IF largest >= 0 THEN
        PERFORM @extschema@.snowflake_advance(sequence, largest, target.epoch_ms);
    END IF;

    -- One ALTER TABLE for each tree of tables, with all its columns in it, so that each table is written
    -- once. Foreign keys are checked anew as each of their two ends is written.
    FOR step IN
        WITH scope AS MATERIALIZED (SELECT * FROM snowflake_internal.attach_scope(tbl, col.attnum))
        SELECT s.root,
               string_agg(DISTINCT format('ALTER COLUMN %I TYPE bigint', s.member_column), ', ') FILTER (WHERE s.is_narrow) AS widening,
               (SELECT format('%s%s, %s', CASE WHEN count(*) > 1 THEN format('%s tables, ', count(*)) END, pg_size_pretty(sum(pg_table_size(c.oid))),
                              CASE WHEN min(c.reltuples) < 0 THEN 'never analyzed' ELSE format('about %s rows', sum(c.reltuples)::bigint) END)
                FROM pg_class AS c
                WHERE c.relkind = 'r' AND c.oid IN (SELECT m.member FROM scope AS m WHERE m.root = s.root AND m.is_narrow)) AS size
        FROM scope AS s
        WHERE s.is_attached OR s.is_narrow
        GROUP BY s.root
        ORDER BY s.root
    LOOP
        started := clock_timestamp();
        IF step.widening IS NOT NULL THEN
            RAISE NOTICE 'rewriting table %: %', step.root, step.size;
        END IF;
        EXECUTE format('ALTER TABLE %s %s', step.root,
                       concat_ws(', ', step.widening,
                                 CASE WHEN step.root = tbl THEN
                                     format('ALTER COLUMN %1$I SET NOT NULL, ALTER COLUMN %1$I SET DEFAULT %2$s', column_name,
                                            snowflake_internal.call_text(target.shard, sequence, target.epoch_ms)) END));
        IF step.widening IS NOT NULL THEN
            RAISE NOTICE 'table % rewritten in % s', step.root, round(extract(epoch FROM clock_timestamp() - started), 1) USING
                HINT = format('ANALYZE %s; what was known of the column is of the old type.', step.root);
        END IF;
    END LOOP;
END;
$$;
COMMENT ON FUNCTION snowflake_attach(regclass, name, integer) IS
    'gives a column IDs of a shard, the schema''s by default: its own sequence, NOT NULL and DEFAULT snowflake_next_id(); serial, identity and integer columns are converted with their rows, and integer columns that refer to it with it';
