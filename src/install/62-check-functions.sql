-- Problems of snowflake_check(): functions of the PL/pgSQL scheme, relations that the caller may not read. And
-- snowflake_check() itself.

-- Functions that may be those of the PL/pgSQL scheme.
CREATE FUNCTION snowflake_internal.check_functions(calls snowflake_internal.call[]) RETURNS SETOF snowflake_internal.finding
    LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
WITH foreigners AS MATERIALIZED (
    SELECT p.oid, p.proowner, p.proname = 'next_id' AND l.lanname = 'plpgsql' AS is_of_scheme
    FROM pg_proc AS p JOIN pg_language AS l ON l.oid = p.prolang
    WHERE p.pronargs = 0 AND p.prorettype = 'bigint'::regtype AND p.prokind = 'f' AND NOT p.proretset AND p.provolatile = 'v'
      AND NOT EXISTS (SELECT FROM snowflake_internal.rows_of($1) AS k WHERE k.classid = 'pg_proc'::regclass AND k.objid = p.oid)
      AND NOT EXISTS (SELECT FROM pg_depend AS e WHERE e.classid = 'pg_proc'::regclass AND e.objid = p.oid AND e.deptype = 'e')
), called AS (
    SELECT p.oid AS function, min(f.oid) AS by_default
    FROM foreigners AS p
    JOIN pg_depend AS u ON u.refclassid = 'pg_proc'::regclass AND u.refobjid = p.oid AND u.classid = 'pg_attrdef'::regclass
    JOIN pg_attrdef AS f ON f.oid = u.objid
    JOIN pg_attribute AS a ON a.attrelid = f.adrelid AND a.attnum = f.adnum
    JOIN pg_type AS t ON t.oid = a.atttypid AND t.typoutput = 'int8out'::regproc -- bigint, or a domain over it
    GROUP BY p.oid
)
SELECT 'notice', p.oid::regprocedure::text,
       coalesce('the DEFAULT of ' || (pg_identify_object('pg_class'::regclass, f.adrelid, f.adnum)).identity
                || ' calls it, and it is not native', 'it is a PL/pgSQL function, with the duplicates of that scheme'),
       snowflake_internal.told_to(p.proowner, format('SELECT %ssnowflake_adopt(%L, shard => ...);', snowflake_internal.prefix(),
                                                     p.oid::regprocedure))
FROM foreigners AS p
LEFT JOIN called AS c ON c.function = p.oid
LEFT JOIN pg_attrdef AS f ON f.oid = c.by_default
WHERE c.function IS NOT NULL OR p.is_of_scheme
$$;

-- The comparisons of the other functions leave out the relations of which the caller may not read all rows.
CREATE FUNCTION snowflake_internal.check_unread(calls snowflake_internal.call[]) RETURNS SETOF snowflake_internal.finding
    LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
WITH calls AS MATERIALIZED (SELECT * FROM snowflake_internal.rows_of($1)),
reader AS (SELECT rolsuper AS may_all FROM pg_roles WHERE rolname = current_user),
unread (schema, oid, relkind, has_policy) AS (
    SELECT c.relnamespace, c.oid, c.relkind, false
    FROM calls AS k
    JOIN pg_sequence AS s ON s.seqrelid = k.seq AND snowflake_internal.is_open(s.seqmin, s.seqmax)
    JOIN pg_class AS c ON c.oid = k.seq
    WHERE NOT (SELECT may_all FROM reader)
      AND CASE c.relkind WHEN 'S' THEN NOT has_sequence_privilege(c.oid, 'SELECT, USAGE') END
    UNION
    SELECT c.relnamespace, c.oid, c.relkind, p.has
    FROM calls AS k
    JOIN pg_class AS c ON k.classid = 'pg_class'::regclass AND c.oid = k.objid AND c.relkind = 'r'
    CROSS JOIN LATERAL (SELECT has_schema_privilege(c.relnamespace, 'USAGE')
                               AND has_column_privilege(c.oid, k.objsubid::smallint, 'SELECT')) AS p (has)
    WHERE NOT (SELECT may_all FROM reader) AND (NOT p.has OR row_security_active(c.oid))
)
SELECT 'warning', format('schema %s', schema::regnamespace),
       format('not looked at: %s %s', CASE WHEN has_policy THEN format('policies hide rows from role %I in', current_user)
                                           ELSE format('role %I may not read', current_user) END,
              string_agg(name, ', ' ORDER BY name)),
       CASE WHEN has_policy THEN 'Call it as the owner of the tables, or as a role with BYPASSRLS.'
            ELSE concat(CASE WHEN bool_or(relkind = 'r') AND NOT has_schema_privilege(schema, 'USAGE')
                             THEN format('GRANT USAGE ON SCHEMA %s TO %I; ', schema::regnamespace, current_user) END,
                        format('GRANT SELECT ON %s TO %I;', string_agg(name, ', ' ORDER BY name), current_user)) END
FROM (SELECT u.*, u.oid::regclass::text COLLATE "C" AS name FROM unread AS u) AS u
GROUP BY schema, has_policy
$$;

CREATE FUNCTION snowflake_check(OUT severity text, OUT object text, OUT problem text, OUT hint text)
    RETURNS SETOF record LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
WITH registry AS MATERIALIZED (SELECT snowflake_internal.checked_calls() AS calls)
SELECT c.*
FROM registry AS r
CROSS JOIN LATERAL (SELECT * FROM snowflake_internal.check_shards(r.calls)
                    UNION ALL SELECT * FROM snowflake_internal.check_columns(r.calls)
                    UNION ALL SELECT * FROM snowflake_internal.check_sequences(r.calls)
                    UNION ALL SELECT * FROM snowflake_internal.check_ids(r.calls)
                    UNION ALL SELECT * FROM snowflake_internal.check_defaults(r.calls)
                    UNION ALL SELECT * FROM snowflake_internal.check_functions(r.calls)
                    UNION ALL SELECT * FROM snowflake_internal.check_unread(r.calls)) AS c
ORDER BY c.severity, c.object COLLATE "C", c.problem COLLATE "C"
$$;
COMMENT ON FUNCTION snowflake_check() IS
    'reports problems of the shards of this database, including future ones: severity (error, warning, notice), object, '
    'problem, and a hint with the remedy; no rows if there are none';
