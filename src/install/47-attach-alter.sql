-- Steps of snowflake_attach(): the change itself.

-- The change itself: types, NOT NULL and DEFAULT, with a NOTICE before and after each rewriting, and one about the sessions that must reconnect.
CREATE FUNCTION snowflake_internal.attach_alter(
        scope snowflake_internal.attach_member[], default_text text, validate boolean) RETURNS void
    LANGUAGE plpgsql VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    step record;
    started timestamptz;
    rewritten text;
    additions text[] := '{}';
    addition text;
    unchecked text;
BEGIN
    -- ALTER TABLE would check a foreign key each time one of its two tables is rewritten. A role that does not own the
    -- referring table leaves it to that. A key of a partitioned table can be NOT VALID only in PostgreSQL 18 and later.
    FOR step IN
        SELECT f.conrelid::regclass AS tbl, f.conname, pg_get_constraintdef(f.oid) AS definition,
               obj_description(f.oid, 'pg_constraint') AS comment,
               NOT validate AND f.convalidated AND c.relkind = 'r' AND r.relkind = 'r' AS is_left
        FROM snowflake_internal.attach_keys(scope) AS f
        JOIN pg_class AS c ON c.oid = f.conrelid
        JOIN pg_class AS r ON r.oid = f.confrelid
        WHERE f.conparentid = 0 AND pg_has_role(c.relowner, 'USAGE')
        ORDER BY f.oid
    LOOP
        EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', step.tbl, step.conname);
        additions := additions
            || format('ALTER TABLE %s ADD CONSTRAINT %I %s%s', step.tbl, step.conname, step.definition,
                      CASE WHEN step.is_left THEN ' NOT VALID' END)
            || format('COMMENT ON CONSTRAINT %I ON %s IS %L', step.conname, step.tbl, step.comment);
        IF step.is_left THEN
            unchecked := concat_ws(E'\n', unchecked, format('ALTER TABLE %s VALIDATE CONSTRAINT %I;', step.tbl, step.conname));
        END IF;
    END LOOP;
    -- One ALTER TABLE for each tree of tables, with all its columns in it, so that each table is written once.
    FOR step IN
        SELECT s.root,
               string_agg(DISTINCT format('ALTER COLUMN %I TYPE bigint', s.column_name) COLLATE "C", ', ')
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
    FOREACH addition IN ARRAY additions LOOP
        EXECUTE addition;
    END LOOP;
    IF unchecked IS NOT NULL THEN
        RAISE NOTICE 'foreign keys are checked for new rows only, until they are validated' USING
            HINT = E'After the commit, while clients read and write:\n' || unchecked;
    END IF;
    IF rewritten IS NOT NULL THEN
        RAISE NOTICE 'open sessions can fail on the changed columns until they reconnect' USING
            DETAIL = 'A PL/pgSQL function that has read one ends with "type of parameter ... '
                     'does not match that when preparing the plan", '
                     'and a prepared SELECT with "cached plan must not change result type".',
            HINT = format('After the commit: ANALYZE %s; and reconnect.', rewritten);
    END IF;
END;
$$;
