-- What CREATE EXTENSION makes: labels, comments, and nothing that is not ours.

SELECT p.oid::regprocedure AS function, provolatile AS vol, proisstrict AS strict, proparallel AS par
FROM pg_proc p
JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND extname = 'snowflake'
ORDER BY p.oid::regprocedure::text COLLATE "C";

-- Every object has a comment.
SELECT pg_describe_object(d.classid, d.objid, 0) AS without_comment
FROM pg_depend d
JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND extname = 'snowflake'
WHERE d.deptype = 'e'
  AND NOT (d.classid = 'pg_type'::regclass)
  AND obj_description(d.objid, d.classid::regclass::name) IS NULL;

-- The value of the extension's own sequence goes into a dump.
SELECT extconfig::regclass[], extcondition FROM pg_extension WHERE extname = 'snowflake';

-- It goes into any schema, and moves with it, the function without arguments included.
CREATE SCHEMA "My Schema";
ALTER EXTENSION snowflake SET SCHEMA "My Schema";
SET snowflake.shard = 7;
SELECT "My Schema".snowflake_shard("My Schema".snowflake_next_id());
ALTER EXTENSION snowflake SET SCHEMA public;
DROP SCHEMA "My Schema";
SELECT snowflake_shard(snowflake_next_id());
RESET snowflake.shard;

-- What it made goes away with it.
BEGIN;
DROP EXTENSION snowflake;
SELECT count(*) FROM pg_class WHERE relname = 'snowflake_id_seq';
ROLLBACK;
