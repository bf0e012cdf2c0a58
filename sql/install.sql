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

-- It goes into any schema, and finds its own objects there: the sequence of the function without
-- arguments, the functions that the views, the SQL functions and the planner call.
BEGIN;
DROP EXTENSION snowflake;
CREATE SCHEMA "My %s Schema";
CREATE EXTENSION snowflake SCHEMA "My %s Schema";
SET LOCAL snowflake.shard = 7;
SELECT "My %s Schema".snowflake_shard("My %s Schema".snowflake_next_id());
SELECT "My %s Schema".snowflake_create_shard(5, 'insta5');
CREATE TABLE insta5.photos (id bigint PRIMARY KEY DEFAULT insta5.next_id());
SELECT table_name, function, shard, seq FROM "My %s Schema".snowflake_columns;
SELECT shard, schema_name FROM "My %s Schema".snowflake_shards;
SELECT seq, shard FROM "My %s Schema".snowflake_sequences;
SELECT * FROM "My %s Schema".snowflake_check();
SET LOCAL enable_seqscan = off;
SET LOCAL enable_bitmapscan = off;
SET LOCAL timezone = 'UTC';
EXPLAIN (COSTS OFF) SELECT id FROM insta5.photos WHERE "My %s Schema".snowflake_between(id, '2024-01-02 00:00:00+00', '2024-01-03 00:00:00+00');
ROLLBACK;

-- What it made goes away with it.
BEGIN;
DROP EXTENSION snowflake;
SELECT count(*) FROM pg_class WHERE relname = 'snowflake_id_seq';
ROLLBACK;
