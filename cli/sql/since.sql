-- name: sources
-- By schema: the sequences that its columns and functions draw from, their epoch, whether they have several shards or epochs, an object without
-- constants, and an object that draws from a sequence although its owner may not.
WITH calls AS MATERIALIZED (
    SELECT k.*, coalesce(relowner, proowner, typowner) AS owner
    FROM snowflake_internal.calls() AS k
    LEFT JOIN pg_class AS c ON classid = 'pg_class'::regclass AND c.oid = objid
    LEFT JOIN pg_proc AS p ON classid = 'pg_proc'::regclass AND p.oid = objid
    LEFT JOIN pg_type AS t ON classid = 'pg_type'::regclass AND t.oid = objid),
-- One owner with the right is enough: others may use a DEFAULT of that.
without_right AS (
    SELECT schema, min(format('%s draws from %s, and role %I may not', pg_describe_object(classid, objid, objsubid),
                              pg_describe_object('pg_class'::regclass, seq, 0), pg_get_userbyid(owner))) AS text
    FROM calls JOIN pg_class AS c ON c.oid = seq AND relkind = 'S'
    GROUP BY schema, seq
    HAVING NOT bool_or(CASE relkind WHEN 'S' THEN has_sequence_privilege(owner, seq, 'USAGE, UPDATE') END))
SELECT schema, array_agg(DISTINCT seq), min(epoch_ms), count(DISTINCT shard) > 1 OR count(DISTINCT epoch_ms) > 1,
       min(pg_describe_object(classid, objid, objsubid)) FILTER (WHERE shard IS NULL OR seq IS NULL OR epoch_ms IS NULL),
       (SELECT min(text) FROM without_right AS w WHERE w.schema = calls.schema)
FROM calls GROUP BY schema
