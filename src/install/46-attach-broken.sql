-- Steps of snowflake_attach(): NOTICEs of functions, subscriptions and transactions that may fail or return other
-- values after the change. The catalogue does not show which are.

-- Says which triggers may set the column, and which functions name an integer type beside a table whose column is widened.
CREATE FUNCTION snowflake_internal.attach_tell_broken(scope snowflake_internal.attach_member[]) RETURNS void
    LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    col CONSTANT snowflake_internal.attach_member := scope[1];
    field CONSTANT text := 'new\."?' || regexp_replace(col.column_name, '(\W)', '\\\1', 'g');
    listed text;
BEGIN
    SELECT string_agg(format('%s calls %s', pg_describe_object('pg_trigger'::regclass, t.oid, 0), p.oid::regprocedure),
                      E'\n' ORDER BY t.tgrelid::regclass::text COLLATE "C", t.tgname) INTO listed
    FROM unnest(scope) AS s
    JOIN pg_trigger AS t ON t.tgrelid = s.tbl AND t.tgparentid = 0 AND NOT t.tgisinternal AND t.tgenabled <> 'D'
                        AND t.tgtype & 7 = 7 -- FOR EACH ROW, BEFORE, INSERT
    JOIN pg_proc AS p ON p.oid = t.tgfoid
    WHERE s.is_attached
      AND p.prosrc ~* ('\m' || field || '"?\s*:?=|\minto\s+(strict\s+)?' || field || '(\W|$)|\mnextval\M');
    IF listed IS NOT NULL THEN
        RAISE NOTICE 'a trigger may set column % of table % in place of its DEFAULT',
            quote_ident(col.column_name), col.tbl USING
            DETAIL = listed,
            HINT = 'Take it out of the trigger''s function, or drop the trigger.';
    END IF;

    -- A body in text has no dependencies, so its words are searched. Shards have tables of the same names: a function
    -- of another schema counts only if it names this one, in its body or in its settings.
    SELECT string_agg(DISTINCT pg_describe_object('pg_proc'::regclass, p.oid, 0) COLLATE "C", E'\n') INTO listed
    FROM (SELECT n.oid AS schema, w.word[1] AS of_schema,
                 '(^|\W)(' || string_agg(DISTINCT w.word[2], '|') || ')(\W|$)' AS of_tables
          FROM unnest(scope) AS s
          JOIN pg_class AS c ON c.oid = s.tbl
          JOIN pg_namespace AS n ON n.oid = c.relnamespace
          CROSS JOIN LATERAL (SELECT ARRAY['(^|\W)' || regexp_replace(n.nspname, '(\W)', '\\\1', 'g') || '(\W|$)',
                                           regexp_replace(c.relname, '(\W)', '\\\1', 'g')] AS word) AS w
          WHERE s.is_narrow AND s.tbl = s.root
          GROUP BY n.oid, w.word[1]) AS t
    JOIN pg_proc AS p ON p.prosrc ~* t.of_tables
        AND (p.pronamespace = t.schema OR concat_ws(' ', p.prosrc, p.proconfig) ~* t.of_schema)
    WHERE p.pronamespace NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)
      AND (p.prosrc ~* '\m(integer|int|int4|int2|smallint|serial|serial4|serial2|smallserial)\M'
           OR p.prorettype || coalesce(p.proallargtypes, p.proargtypes::oid[])
              && ARRAY['integer'::regtype, 'smallint'::regtype, 'integer[]'::regtype, 'smallint[]'::regtype]::oid[])
      AND NOT EXISTS (SELECT FROM pg_depend AS e WHERE e.classid = 'pg_proc'::regclass AND e.objid = p.oid
                      AND e.deptype = 'e');
    IF listed IS NOT NULL THEN
        RAISE NOTICE 'functions that name the changed tables also name integer types' USING
            DETAIL = listed,
            HINT = 'Where a parameter, variable or cast of theirs holds an ID, make it bigint.';
    END IF;
END;
$$;

-- Names the publications of the tables that are to be rewritten, and the transactions with snapshots before that.
CREATE FUNCTION snowflake_internal.attach_tell_readers(scope snowflake_internal.attach_member[]) RETURNS void
    LANGUAGE plpgsql STABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    listed text;
    statements text;
BEGIN
    IF NOT EXISTS (SELECT FROM unnest(scope) AS s WHERE s.is_narrow) THEN
        RETURN;
    END IF;
    SELECT string_agg(DISTINCT format('publication %I has table %s', p.pubname, s.tbl) COLLATE "C", E'\n'),
           string_agg(DISTINCT format('ALTER TABLE %s ALTER COLUMN %I TYPE bigint;', s.tbl, s.column_name)
                      COLLATE "C", E'\n')
    INTO listed, statements
    FROM unnest(scope) AS s
    JOIN pg_class AS c ON c.oid = s.tbl
    JOIN pg_publication AS p ON p.puballtables
        OR EXISTS (SELECT FROM pg_publication_rel AS r WHERE r.prpubid = p.oid AND r.prrelid = s.tbl)
        OR EXISTS (SELECT FROM pg_publication_namespace AS r WHERE r.pnpubid = p.oid AND r.pnnspid = c.relnamespace)
    WHERE s.is_narrow AND c.relpersistence = 'p';
    IF listed IS NOT NULL THEN
        RAISE NOTICE 'a subscription whose columns are integer stops at the first ID' USING
            DETAIL = listed,
            HINT = E'On each subscriber, before an ID is inserted here:\n' || statements;
    END IF;

    -- The rewritten rows have this transaction as their xmin. Our own snapshot is that of the call.
    SELECT string_agg(concat_ws(', ', format('process %s of role %s', a.pid, a.usesysid::regrole),
                                'since ' || date_trunc('second', a.xact_start)), E'\n' ORDER BY a.pid) INTO listed
    FROM pg_stat_activity AS a
    JOIN pg_stat_activity AS o ON o.pid = pg_backend_pid() AND o.datid = a.datid
    WHERE a.pid <> o.pid AND a.usesysid <> 0 AND age(a.backend_xmin) >= age(o.backend_xmin);
    IF listed IS NOT NULL THEN
        RAISE NOTICE 'transactions with older snapshots will see no rows in the rewritten tables, without an error' USING
            DETAIL = listed,
            HINT = 'If they may still read these tables, roll back, and attach when they have ended.';
    END IF;
END;
$$;
