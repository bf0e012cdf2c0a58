-- Problems in a database full of shards: a function for each topic, here and in the next files, and snowflake_check()
-- over all of them. None waits for a lock, or runs code of the objects that it looks at.

-- The shards that snowflake_next_id() without arguments makes IDs of: of this session, the database and its roles.
CREATE FUNCTION snowflake_internal.shard_settings(OUT name text, OUT shard integer) RETURNS SETOF record
    LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
-- ALTER DATABASE and ALTER ROLE take any text where the library is not loaded.
SELECT s.name, substring(s.value, '^[0-9]{1,4}$')::integer
FROM (SELECT 'snowflake.shard' AS name, current_setting('snowflake.shard', true) AS value
      UNION
      SELECT concat('snowflake.shard',
                    CASE WHEN d.setrole <> 0 THEN format(' of role %I', pg_get_userbyid(d.setrole)) END),
             split_part(c, '=', 2)
      FROM pg_db_role_setting AS d CROSS JOIN unnest(d.setconfig) AS c
      WHERE d.setdatabase IN (0, (SELECT b.oid FROM pg_database AS b WHERE b.datname = current_database()))
        AND starts_with(c, 'snowflake.shard=')) AS s
$$;

CREATE TYPE snowflake_internal.finding AS (severity text, object text, problem text, hint text);

-- The calls that are checked, read once for all checks.
-- Citus makes a table for each shard of a distributed table, with the same DEFAULTs. Their rows come with their IDs.
-- Temporary objects of other sessions end with these, and any role may make them.
CREATE FUNCTION snowflake_internal.checked_calls() RETURNS snowflake_internal.call[]
    LANGUAGE plpgsql STABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    calls snowflake_internal.call[];
BEGIN
    EXECUTE 'SELECT array_agg(k) FROM snowflake_internal.calls() AS k WHERE pg_is_other_temp_schema(k.schema) IS NOT TRUE'
        || CASE WHEN to_regprocedure('pg_catalog.relation_is_a_known_shard(regclass)') IS NOT NULL
           THEN ' AND (k.classid <> ''pg_class''::regclass OR NOT pg_catalog.relation_is_a_known_shard(k.objid))' ELSE '' END
        INTO calls;
    RETURN calls;
END;
$$;

-- unnest(), for which the planner expects 10 rows. With SET the function is not inlined.
CREATE FUNCTION snowflake_internal.rows_of(calls snowflake_internal.call[]) RETURNS SETOF snowflake_internal.call
    LANGUAGE sql IMMUTABLE PARALLEL SAFE ROWS 10000 SET search_path = pg_catalog, pg_temp
AS 'SELECT * FROM unnest($1)';

-- Numbers that two schemas use, or a schema and the setting snowflake.shard; numbers that are no shard.
CREATE FUNCTION snowflake_internal.check_shards(calls snowflake_internal.call[]) RETURNS SETOF snowflake_internal.finding
    LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
WITH shards AS MATERIALIZED (
    SELECT k.shard, n.oid AS schema_oid, quote_ident(n.nspname) AS schema, k.seq, k.classid, k.objid, k.objsubid
    FROM snowflake_internal.rows_of($1) AS k JOIN pg_namespace AS n ON n.oid = k.schema
    WHERE k.is_direct AND k.shard IS NOT NULL
      AND n.nspname !~ '^pg_temp_' -- a temporary copy of a table has its DEFAULTs, too
), twice AS (
    SELECT shard FROM shards GROUP BY shard HAVING min(schema_oid) <> max(schema_oid)
)
SELECT 'error', format('shard %s', shard),
       format('schemas %s make IDs of the same shard', string_agg(DISTINCT schema COLLATE "C", ', ')),
       'Give each schema a number of its own; until then both schemas can make the same IDs.'
FROM shards AS s
-- One sequence repeats no ID: without the objects of other schemas that draw from a sequence of the shard's own.
WHERE shard IN (SELECT shard FROM twice)
  AND NOT EXISTS (SELECT FROM shards AS o JOIN pg_class AS c ON c.oid = o.seq AND c.relnamespace = o.schema_oid
                  WHERE o.shard = s.shard AND o.seq = s.seq AND o.schema_oid <> s.schema_oid)
GROUP BY shard HAVING count(DISTINCT schema) > 1
UNION ALL
SELECT 'error', (pg_identify_object(classid, objid, objsubid)).identity, format('shard %s is out of range', shard),
       'A shard number is 0 to 8191.'
FROM shards WHERE shard NOT BETWEEN 0 AND 8191
UNION ALL
SELECT 'error', format('setting %s', s.name),
       format('it is %s, the shard of schema %s', s.shard, string_agg(DISTINCT k.schema COLLATE "C", ', ')),
       format('snowflake_next_id() and the schema make the same IDs. Set a number that SELECT shard FROM %ssnowflake_shards '
              'does not show.', snowflake_internal.prefix())
FROM snowflake_internal.shard_settings() AS s JOIN shards AS k USING (shard)
GROUP BY s.name, s.shard
$$;

-- DEFAULTs, functions and domains that make no IDs, or others than their schema's.
CREATE FUNCTION snowflake_internal.check_columns(calls snowflake_internal.call[]) RETURNS SETOF snowflake_internal.finding
    LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
WITH calls AS MATERIALIZED (SELECT * FROM snowflake_internal.rows_of($1)), strange AS MATERIALIZED (
    SELECT k.*, f.schema AS other
    FROM calls AS k
    LEFT JOIN pg_class AS s ON s.oid = k.seq AND s.relkind = 'S'
    CROSS JOIN LATERAL (SELECT CASE WHEN k.home <> k.schema THEN k.home ELSE s.relnamespace END::regnamespace) AS f(schema)
    WHERE k.classid = 'pg_class'::regclass AND f.schema <> k.schema
      AND k.seq IS DISTINCT FROM (SELECT snowflake_internal.id_seq())
)
SELECT DISTINCT 'error', (pg_identify_object(k.classid, k.objid, k.objsubid)).identity,
       format('the column is of type %s', a.atttypid::regtype),
       'An ID is a bigint: ALTER TABLE ... ALTER COLUMN ... TYPE bigint.'
FROM calls AS k
JOIN pg_attribute AS a ON k.classid = 'pg_class'::regclass AND a.attrelid = k.objid AND a.attnum = k.objsubid
JOIN pg_type AS t ON t.oid = a.atttypid
-- A domain has the output function of its type. Text and numeric hold every ID, floating point rounds it.
WHERE t.typoutput IN ('int2out'::regproc, 'int4out'::regproc, 'float4out'::regproc, 'float8out'::regproc)
UNION ALL
SELECT 'error', (pg_identify_object(classid, objid, objsubid)).identity,
       format('it draws from %s, which is no sequence', seq::regclass),
       'No IDs are made. Name a sequence: snowflake_next_id(5, ''schema.sequence'').'
FROM calls
WHERE is_direct AND seq IS NOT NULL AND CASE WHEN NOT EXISTS (SELECT FROM pg_sequence AS s WHERE s.seqrelid = seq)
      -- A sequence may be younger than the snapshot.
      THEN (pg_identify_object('pg_class'::regclass, seq, 0)).type IS DISTINCT FROM 'sequence' END
UNION ALL
SELECT DISTINCT 'warning', (pg_identify_object(classid, objid, objsubid)).identity,
       'its shard, sequence or epoch is no constant, and cannot be checked',
       'Write them as literals: snowflake_next_id(5, ''schema.sequence'').'
FROM calls
WHERE is_direct
  AND (seq IS NULL OR epoch_ms IS NULL
       -- snowflake_next_id() has its shard from a setting, and means it
       OR shard IS NULL AND seq <> (SELECT snowflake_internal.id_seq()))
UNION ALL
SELECT 'warning', (pg_identify_object(classid, objid, objsubid)).identity,
       format('it makes IDs of the shards %s', array_to_string(array_agg(DISTINCT shard), ', ')),
       'Give each table and function the shard of its schema alone.'
FROM calls WHERE shard IS NOT NULL
GROUP BY classid, objid, objsubid
-- Not again for each column that calls one such function.
HAVING count(DISTINCT shard) > 1 AND (bool_or(is_direct) OR count(DISTINCT function) > 1)
UNION ALL
SELECT DISTINCT 'warning', (pg_identify_object(k.classid, k.objid, k.objsubid)).identity,
       format('it draws from schema %s: shard %s, sequence %s', k.other, coalesce(k.shard::text, '?'),
              coalesce(k.seq::regclass::text, '?')),
       format('A copy of a table (LIKE) has the DEFAULTs of the other. Set one of its own schema: '
              'ALTER TABLE %s ALTER COLUMN %I SET DEFAULT ...;', t.oid::regclass, a.attname)
FROM strange AS k
JOIN pg_class AS t ON t.oid = k.objid AND t.relpersistence <> 't' AND NOT t.relispartition -- rows come through its parent
JOIN pg_attribute AS a ON a.attrelid = k.objid AND a.attnum = k.objsubid
$$;

-- Sequences that cannot hold a position, are ahead of the clock, or are less durable than their tables; and epochs.
CREATE FUNCTION snowflake_internal.check_sequences(calls snowflake_internal.call[]) RETURNS SETOF snowflake_internal.finding
    LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
WITH calls AS MATERIALIZED (SELECT * FROM snowflake_internal.rows_of($1)), sequences AS MATERIALIZED (
    SELECT s.seqrelid, s.seqtypid, s.seqincrement, s.seqmax, c.relpersistence,
           -- Of a value that is not issued yet, too: RESTART WITH, setval(..., false).
           snowflake_internal.stored_ms(v.last_value, k.epoch_ms)
           - floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS lead
    FROM pg_sequence AS s
    JOIN pg_class AS c ON c.oid = s.seqrelid
    -- A sequence with two epochs is an error of its own.
    JOIN (SELECT seq, min(epoch_ms) AS epoch_ms FROM calls GROUP BY seq) AS k ON k.seq = s.seqrelid
    CROSS JOIN LATERAL snowflake_internal.stored_value(s.seqrelid) AS v
    WHERE snowflake_internal.is_open(s.seqmin, s.seqmax)
      -- The fence of a move or a split sets a sequence to its end.
      AND ((v.last_value = s.seqmax) IS NOT TRUE OR NOT (SELECT snowflake_internal.has_record()))
), settings AS (
    SELECT setting::bigint AS max_drift FROM pg_settings WHERE name = 'snowflake.max_drift'
)
SELECT 'error', format('sequence %s', seq::regclass),
       format('its IDs are made with %s epochs: %s', count(DISTINCT epoch_ms),
              string_agg(DISTINCT epoch_ms::text COLLATE "C", ', ')),
       'Use one epoch_ms with one sequence: IDs of two epochs are not in order, and can be the same.'
FROM calls WHERE seq IS NOT NULL AND epoch_ms IS NOT NULL
GROUP BY seq HAVING count(DISTINCT epoch_ms) > 1
UNION ALL
SELECT DISTINCT 'warning', format('epoch_ms %s', epoch_ms),
       format('its last ID is of %s UTC', (timestamp 'epoch' + (epoch_ms + (1::bigint << 40) - 1) * interval '1 ms')),
       'Less than ten years are left. Plan for new tables with a later epoch_ms.'
FROM calls
WHERE epoch_ms BETWEEN -60000000000000
                   AND extract(epoch FROM clock_timestamp()) * 1000 + 315360000000 - (1::bigint << 40)
UNION ALL
SELECT 'error', format('sequence %s', seqrelid::regclass),
       format('it cannot hold a position: it is %s with INCREMENT %s and MAXVALUE %s', seqtypid::regtype, seqincrement,
              seqmax), snowflake_internal.reshape_hint(seqrelid)
FROM sequences
WHERE NOT snowflake_internal.holds_position(seqtypid, seqincrement, seqmax)
UNION ALL
SELECT 'notice', format('sequence %s', s.seqrelid::regclass),
       format('it makes no IDs on this Citus worker: its MINVALUE %s and MAXVALUE %s are those of a copy', s.seqmin,
              s.seqmax), 'Insert through the coordinator; docs/citus.md says how to insert on every node.'
FROM pg_sequence AS s
WHERE s.seqrelid IN (SELECT seq FROM calls) AND snowflake_internal.is_citus_copy(s.seqmin, s.seqmax)
UNION ALL
SELECT 'error', format('sequence %s', seqrelid::regclass), format('the clock is %s s behind it', lead / 1000),
       'No IDs are made until it has caught up to snowflake.max_drift. Set the clock right. If it is right, '
       'the error of snowflake_next_id() has the statements that set the sequence.'
FROM sequences, settings WHERE max_drift >= 0 AND lead > greatest(max_drift, 2000)
UNION ALL
SELECT 'warning', format('sequence %s', seqrelid::regclass), format('the clock is %s s behind it', lead / 1000),
       'IDs go on from the last one at 1024 a millisecond. Look at the clock.'
FROM sequences, settings WHERE lead > 2000 AND (max_drift < 0 OR lead <= max_drift)
UNION ALL
SELECT 'warning', format('sequence %s', s.seqrelid::regclass), format('it is unlogged, and %s is not',
              string_agg(DISTINCT (pg_identify_object(k.classid, k.objid, k.objsubid)).identity COLLATE "C", ', ')),
       format('ALTER SEQUENCE %s SET LOGGED; after a crash only the clock protects its IDs.', s.seqrelid::regclass)
FROM sequences AS s
JOIN calls AS k ON k.seq = s.seqrelid
JOIN pg_class AS c ON k.classid = 'pg_class'::regclass AND c.oid = k.objid
WHERE s.relpersistence = 'u' AND c.relpersistence = 'p'
GROUP BY s.seqrelid
$$;
