-- Steps of snowflake_attach(): the change itself.

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
COMMENT ON FUNCTION snowflake_internal.attach_alter IS
    'the change itself: types, NOT NULL and DEFAULT, with a NOTICE before and after each rewriting, and one about '
    'the sessions that must reconnect';
