-- name: sources
-- By schema: the sequences that its columns and functions draw from, their epoch, whether they have several shards or epochs, an object without
-- constants, a function whose body is text, and an object that draws from a sequence although its owner may not.
--
-- PostgreSQL keeps the dependencies of a body that was parsed by CREATE FUNCTION. A text is known by the name of the function alone, not by
-- its sequence. Functions of other schemas count where a DEFAULT or a trigger of the schema calls them.
WITH calls AS MATERIALIZED (
    SELECT k.*, coalesce(relowner, proowner, typowner) AS owner
    FROM snowflake_internal.calls() AS k
    LEFT JOIN pg_class AS c ON classid = 'pg_class'::regclass AND c.oid = objid
    LEFT JOIN pg_proc AS p ON classid = 'pg_proc'::regclass AND p.oid = objid
    LEFT JOIN pg_type AS t ON classid = 'pg_type'::regclass AND t.oid = objid),
texts AS MATERIALIZED (
    SELECT p.oid, pronamespace FROM pg_proc AS p JOIN pg_language AS l ON l.oid = prolang
    WHERE lanname NOT IN ('c', 'internal') AND prosqlbody IS NULL AND strpos(lower(prosrc), 'snowflake_next_id') > 0
      AND NOT EXISTS (SELECT FROM calls WHERE classid = 'pg_proc'::regclass AND objid = p.oid)
      AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_proc'::regclass AND objid = p.oid AND deptype = 'e')),
texts_of (schema, function) AS (
    SELECT pronamespace, oid FROM texts
    UNION ALL
    SELECT relnamespace, t.oid
    FROM texts AS t JOIN pg_depend ON refclassid = 'pg_proc'::regclass AND refobjid = t.oid AND classid = 'pg_attrdef'::regclass
    JOIN pg_attrdef AS d ON d.oid = objid JOIN pg_class AS c ON c.oid = adrelid
    UNION ALL
    SELECT relnamespace, t.oid
    FROM texts AS t JOIN pg_trigger ON tgfoid = t.oid JOIN pg_class AS c ON c.oid = tgrelid),
named (schema, text) AS (
    SELECT schema, min(pg_describe_object('pg_proc'::regclass, function, 0)) FROM texts_of GROUP BY schema),
-- One owner with the right is enough: others may use a DEFAULT of that.
without_right AS (
    SELECT schema, min(format('%s draws from %s, and role %I may not', pg_describe_object(classid, objid, objsubid),
                              pg_describe_object('pg_class'::regclass, seq, 0), pg_get_userbyid(owner))) AS text
    FROM calls JOIN pg_class AS c ON c.oid = seq AND relkind = 'S'
    GROUP BY schema, seq
    HAVING NOT bool_or(CASE relkind WHEN 'S' THEN has_sequence_privilege(owner, seq, 'USAGE, UPDATE') END))
SELECT schema, array_agg(DISTINCT seq), min(epoch_ms), count(DISTINCT shard) > 1 OR count(DISTINCT epoch_ms) > 1,
       min(pg_describe_object(classid, objid, objsubid)) FILTER (WHERE shard IS NULL OR seq IS NULL OR epoch_ms IS NULL),
       (SELECT text FROM named AS n WHERE n.schema = calls.schema),
       (SELECT min(text) FROM without_right AS w WHERE w.schema = calls.schema)
FROM calls GROUP BY schema
