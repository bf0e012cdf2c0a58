-- What a DBA should know of a database full of shards.

CREATE FUNCTION snowflake_check(OUT severity text, OUT object text, OUT problem text, OUT hint text) RETURNS SETOF record
    LANGUAGE sql VOLATILE PARALLEL UNSAFE
    SET search_path = pg_catalog, pg_temp
AS $$
WITH calls AS MATERIALIZED (
    SELECT k.*, coalesce(c.relnamespace, p.pronamespace) AS schema,
           CASE WHEN c.oid IS NULL THEN k.objid::regprocedure::text
                -- Its own row may be younger than the snapshot.
                ELSE concat_ws('.', k.objid::regclass, quote_ident(a.attname)) END AS name,
           a.atttypid, c.relpersistence
    FROM snowflake_internal.calls() AS k
    LEFT JOIN pg_class AS c ON k.classid = 'pg_class'::regclass AND c.oid = k.objid
    LEFT JOIN pg_attribute AS a ON k.classid = 'pg_class'::regclass AND a.attrelid = k.objid AND a.attnum = k.objsubid
    LEFT JOIN pg_proc AS p ON k.classid = 'pg_proc'::regclass AND p.oid = k.objid
), sequences AS MATERIALIZED (
    SELECT s.seqrelid, s.seqtypid, s.seqincrement, s.seqmax, c.relpersistence,
           CASE WHEN has_sequence_privilege(s.seqrelid, 'SELECT, USAGE')
                THEN snowflake_internal.stored_ms(pg_sequence_last_value(s.seqrelid), k.epoch_ms)
                     - floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint
           END AS lead
    FROM pg_sequence AS s
    JOIN pg_class AS c ON c.oid = s.seqrelid
    -- A sequence with two epochs is an error of its own.
    JOIN (SELECT seq, min(epoch_ms) AS epoch_ms FROM calls GROUP BY seq) AS k ON k.seq = s.seqrelid
), settings AS (
    SELECT setting::bigint AS max_drift FROM pg_settings WHERE name = 'snowflake.max_drift'
)
-- IDs that can be made twice, or not at all
SELECT 'error', format('shard %s', shard),
       format('schemas %s make IDs of the same shard', string_agg(DISTINCT quote_ident(n.nspname), ', ')),
       'Give each schema a number of its own; IDs that both have made are in both.'
FROM calls JOIN pg_namespace AS n ON n.oid = schema
WHERE function IS NULL AND shard IS NOT NULL
  AND n.nspname !~ '^pg_temp_' -- a temporary copy of a table has its DEFAULTs, too
GROUP BY shard HAVING count(DISTINCT schema) > 1
UNION ALL
SELECT 'error', format('sequence %s', seq::regclass),
       format('its IDs are made with %s epochs: %s', count(DISTINCT epoch_ms), string_agg(DISTINCT epoch_ms::text, ', ')),
       'Use one epoch_ms with one sequence: IDs of two epochs are not in order, and can be the same.'
FROM calls WHERE seq IS NOT NULL AND epoch_ms IS NOT NULL
GROUP BY seq HAVING count(DISTINCT epoch_ms) > 1
UNION ALL
SELECT 'error', name, format('shard %s is out of range', shard), 'A shard number is 0 to 8191.'
FROM calls WHERE function IS NULL AND shard NOT BETWEEN 0 AND 8191
UNION ALL
SELECT 'error', format('sequence %s', seqrelid::regclass),
       format('it cannot hold a position: it is %s with INCREMENT %s and MAXVALUE %s', seqtypid::regtype, seqincrement, seqmax),
       format('ALTER SEQUENCE %s AS bigint INCREMENT BY 1 NO MAXVALUE;', seqrelid::regclass)
FROM sequences
WHERE NOT snowflake_internal.holds_position(seqtypid, seqincrement, seqmax)
UNION ALL
SELECT 'error', name, format('the column is of type %s', atttypid::regtype), 'An ID is a bigint: ALTER TABLE ... ALTER COLUMN ... TYPE bigint.'
FROM calls JOIN pg_type AS t ON t.oid = atttypid
WHERE t.typoutput <> 'int8out'::regproc -- a domain over bigint has that, too, and will do
UNION ALL
SELECT 'error', format('sequence %s', seqrelid::regclass), format('the clock is %s s behind it', lead / 1000),
       'No IDs are made until it has caught up to snowflake.max_drift. Set the clock right, or the sequence if it was set into the future.'
FROM sequences, settings WHERE max_drift >= 0 AND lead > greatest(max_drift, 2000)
UNION ALL
SELECT 'warning', format('sequence %s', seqrelid::regclass), format('the clock is %s s behind it', lead / 1000),
       'IDs go on from the last one at 1024 a millisecond. Look at the clock.'
FROM sequences, settings WHERE lead > 2000 AND (max_drift < 0 OR lead <= max_drift)
UNION ALL
SELECT DISTINCT 'warning', format('epoch_ms %s', epoch_ms),
       format('its last ID is of %s UTC', (timestamp 'epoch' + (epoch_ms + (1::bigint << 40) - 1) * interval '1 ms')),
       'Less than ten years are left. Plan for new tables with a later epoch_ms.'
FROM calls
WHERE epoch_ms BETWEEN -60000000000000 AND extract(epoch FROM clock_timestamp()) * 1000 + 315360000000 - (1::bigint << 40)
UNION ALL
SELECT 'warning', format('sequence %s', seqrelid::regclass), 'it is unlogged, and ' || string_agg(DISTINCT calls.name, ', ') || ' is not',
       format('ALTER SEQUENCE %s SET LOGGED; after a crash only the clock protects its IDs.', seqrelid::regclass)
FROM sequences JOIN calls ON calls.seq = seqrelid
WHERE sequences.relpersistence = 'u' AND calls.relpersistence = 'p'
GROUP BY seqrelid
UNION ALL
SELECT 'warning', name, 'its shard, sequence or epoch is no constant, and cannot be checked',
       'Write them as literals: snowflake_next_id(5, ''schema.sequence'').'
FROM calls
WHERE function IS NULL
  AND (seq IS NULL OR epoch_ms IS NULL
       -- snowflake_next_id() has its shard from a setting, and means it
       OR shard IS NULL AND seq <> '@extschema@.snowflake_id_seq'::regclass)
UNION ALL
SELECT 'notice', p.oid::regprocedure::text, 'it is a PL/pgSQL function, with the duplicates of that scheme',
       format('SELECT snowflake_adopt(%L, shard => ...);', p.oid::regprocedure)
FROM pg_proc AS p JOIN pg_language AS l ON l.oid = p.prolang
WHERE p.proname = 'next_id' AND p.pronargs = 0 AND p.prorettype = 'bigint'::regtype AND l.lanname = 'plpgsql'
ORDER BY 1, 2, 3
$$;
COMMENT ON FUNCTION snowflake_check() IS
    'what is wrong, or will be, with the shards of this database: severity (error, warning, notice), object, problem, and how to mend it; no rows: nothing';
