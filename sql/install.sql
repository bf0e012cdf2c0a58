-- What CREATE EXTENSION makes: labels, comments, and nothing that is not ours.

SELECT p.oid::regprocedure AS function, provolatile AS vol, proisstrict AS strict, proparallel AS par
FROM pg_proc p
JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND extname = 'snowflake'
ORDER BY p.oid::regprocedure::text COLLATE "C";

-- \df snowflake* and \d snowflake* show what is meant to be called and read. All else is in snowflake_internal.
SELECT DISTINCT proname FROM pg_proc WHERE proname ~ '^snowflake' AND pg_function_is_visible(oid) ORDER BY 1;
SELECT relname, relkind FROM pg_class WHERE relname ~ '^snowflake' AND pg_table_is_visible(oid) ORDER BY 1;

-- Every object for users has a comment. That of an internal function stands in the install script.
SELECT pg_describe_object(d.classid, d.objid, 0) AS without_comment
FROM pg_depend d
JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND extname = 'snowflake'
WHERE d.deptype = 'e'
  AND NOT (d.classid = 'pg_type'::regclass)
  AND NOT EXISTS (SELECT FROM pg_proc WHERE d.classid = 'pg_proc'::regclass AND oid = d.objid
                  AND pronamespace = 'snowflake_internal'::regnamespace)
  AND obj_description(d.objid, d.classid::regclass::name) IS NULL;

-- The value of the extension's own sequence goes into a dump.
SELECT extconfig::regclass[], extcondition FROM pg_extension WHERE extname = 'snowflake';

-- Every role may call the internal functions, as the public ones do with the caller's rights. Only the owner
-- of their schema may create anything there.
SELECT has_schema_privilege('public', 'snowflake_internal', 'USAGE') AS may_use,
       has_schema_privilege('public', 'snowflake_internal', 'CREATE') AS may_create;

-- It goes into any schema, and finds its own objects there: the sequence of the function without
-- arguments, the functions that the views, the SQL functions and the planner call. Functions with the same
-- names that are first in the search_path are not called.
BEGIN;
DROP EXTENSION snowflake;
CREATE SCHEMA planted;
CREATE FUNCTION planted.snowflake_next_id(integer, regclass) RETURNS bigint LANGUAGE sql RETURN 1;
CREATE FUNCTION planted.snowflake_min_id(timestamptz) RETURNS bigint LANGUAGE sql IMMUTABLE RETURN 1;
SET LOCAL search_path = planted, public;
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
-- A view needs the privileges of its owner only, in the planner too.
CREATE VIEW insta5.of_a_day AS
    SELECT id FROM insta5.photos WHERE "My %s Schema".snowflake_between(id, '2024-01-02 00:00:00+00', '2024-01-03 00:00:00+00');
CREATE VIEW insta5.shards AS SELECT shard, schema_name FROM "My %s Schema".snowflake_shards;
CREATE ROLE snowflake_regress_reader;
GRANT USAGE ON SCHEMA insta5 TO snowflake_regress_reader;
GRANT SELECT ON insta5.of_a_day, insta5.shards TO snowflake_regress_reader;
SET LOCAL ROLE snowflake_regress_reader;
SELECT * FROM insta5.of_a_day;
SELECT * FROM insta5.shards;
ROLLBACK;

-- Overloads of its functions that another role has made there before do not stop it, nor an update.
BEGIN;
CREATE ROLE snowflake_regress_planter;
CREATE SCHEMA planted;
GRANT ALL ON SCHEMA planted TO snowflake_regress_planter;
CREATE TABLE names AS
    SELECT DISTINCT proname, arguments
    FROM pg_proc p JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
    JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND extname = 'snowflake',
    LATERAL (VALUES ('text'), ('text, text'), ('text, text, text'), ('anyelement'), ('anyelement, anyelement'),
             ('smallint, text DEFAULT NULL'), ('timestamp, bigint DEFAULT 0')) AS a (arguments)
    WHERE pronamespace = 'public'::regnamespace AND (proname, arguments) <> ('snowflake_from_text', 'text, text');
GRANT SELECT ON names TO snowflake_regress_planter;
DROP EXTENSION snowflake;
SET LOCAL ROLE snowflake_regress_planter;
DO $$
DECLARE
    name record;
BEGIN
    FOR name IN SELECT * FROM public.names LOOP
        EXECUTE format('CREATE FUNCTION planted.%I(%s) RETURNS bigint LANGUAGE sql AS ''SELECT 1::bigint''', name.proname, name.arguments);
    END LOOP;
END
$$;
RESET ROLE;
CREATE EXTENSION snowflake SCHEMA planted;
SELECT count(*) AS members FROM pg_depend WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e'
    AND objid IN (SELECT oid FROM pg_proc WHERE proowner = 'snowflake_regress_planter'::regrole);
DROP EXTENSION snowflake;
CREATE EXTENSION snowflake SCHEMA planted VERSION '1.0';
ALTER EXTENSION snowflake UPDATE;
SELECT extversion <> '1.0' AS updated FROM pg_extension WHERE extname = 'snowflake';
ROLLBACK;

-- What it made goes away with it. A schema that is there already is not used.
BEGIN;
DROP EXTENSION snowflake;
SELECT count(*) FROM pg_class WHERE relname = 'snowflake_id_seq';
-- (18 adds a CONTEXT)
\set VERBOSITY terse
CREATE SCHEMA snowflake_internal;
CREATE EXTENSION snowflake;
ROLLBACK;
\set VERBOSITY default
