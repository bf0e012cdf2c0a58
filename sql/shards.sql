-- A schema becomes a shard, and the views read it back out of the catalogue.
\set SHOW_CONTEXT never

CREATE SCHEMA shards;
SELECT snowflake_create_shard(5, 'insta5');
SELECT pg_get_functiondef('insta5.next_id'::regproc);
CREATE TABLE insta5.photos (id bigint PRIMARY KEY DEFAULT insta5.next_id(), caption text);
CREATE TABLE insta5.likes (id bigint PRIMARY KEY DEFAULT insta5.next_id());
INSERT INTO insta5.photos DEFAULT VALUES;
INSERT INTO insta5.likes DEFAULT VALUES;
SELECT snowflake_shard(p.id) AS photo, snowflake_shard(l.id) AS "like", p.id < l.id AS in_order FROM insta5.photos AS p, insta5.likes AS l;

-- The function is plain SQL: nothing of it is left in a plan.
EXPLAIN (VERBOSE, COSTS OFF) INSERT INTO insta5.photos DEFAULT VALUES;

-- Direct calls, in all the ways an argument can be written; other epochs; a sequence of two shards.
CREATE SEQUENCE shards."own Sequence";
CREATE TABLE shards.direct (
    a bigint DEFAULT snowflake_next_id(6, 'shards."own Sequence"'),
    b bigint DEFAULT snowflake_next_id(6::smallint, 'shards."own Sequence"'::regclass, 0),
    c bigint DEFAULT coalesce(NULL, snowflake_next_id(6, 'shards."own Sequence"', 1767225600000)),
    d bigint DEFAULT snowflake_next_id((2 * 3)::int, 'shards."own Sequence"'),
    e bigint DEFAULT snowflake_next_id(6, ('shards.' || 'none')::text::regclass),
    f bigint DEFAULT insta5.next_id() + 0,
    g bigint DEFAULT 1,
    h bigint GENERATED ALWAYS AS (snowflake_seq(1)) STORED,
    i bigint DEFAULT snowflake_next_id());
CREATE FUNCTION shards.outer_id() RETURNS bigint LANGUAGE sql BEGIN ATOMIC SELECT insta5.next_id(); END;
CREATE FUNCTION shards.text_body() RETURNS bigint LANGUAGE sql AS $$ SELECT insta5.next_id() $$;
CREATE TABLE shards.wrapped (a bigint DEFAULT shards.outer_id(), b bigint DEFAULT shards.text_body());
SELECT * FROM snowflake_columns ORDER BY 1, 2, 3;
SELECT * FROM snowflake_shards ORDER BY 1, 2, 4;
SELECT seq, shard, epoch_ms, last_id_at <= clock_timestamp() AS made, last_counter, lead < interval '1 s' AS lead FROM snowflake_sequences
WHERE seq <> 'snowflake_id_seq'::regclass ORDER BY 1, 2, 3;
-- A small ID that setval() has stored has no time: as a position it would be older than the epoch.
BEGIN;
SELECT snowflake_create_shard(17, 'small');
SELECT setval('small.table_id_seq', 1::bigint << 46);
SELECT last_id_at, last_counter, lead FROM snowflake_sequences WHERE shard = 17;
ROLLBACK;

-- Functions that call each other in a circle end the search, not the server.
CREATE FUNCTION shards.circle_a() RETURNS bigint LANGUAGE sql RETURN insta5.next_id();
CREATE FUNCTION shards.circle_b() RETURNS bigint LANGUAGE sql RETURN shards.circle_a();
CREATE OR REPLACE FUNCTION shards.circle_a() RETURNS bigint LANGUAGE sql RETURN shards.circle_b();
SELECT count(*) FROM snowflake_internal.calls() WHERE objid = 'shards.circle_a'::regproc;
DROP FUNCTION shards.circle_a, shards.circle_b CASCADE;

-- Renames, moves and drops are followed.
ALTER SCHEMA insta5 RENAME TO insta_five;
ALTER SEQUENCE shards."own Sequence" RENAME TO renamed;
ALTER TABLE shards.direct RENAME COLUMN a TO renamed;
ALTER TABLE shards.direct SET SCHEMA insta_five;
SELECT * FROM snowflake_columns WHERE table_name IN ('photos', 'direct') AND column_name IN ('id', 'renamed') ORDER BY 1, 2, 3;
SELECT snowflake_next_id(5, 'insta_five.table_id_seq') < insta_five.next_id() AS goes_on;
INSERT INTO insta_five.photos DEFAULT VALUES;
SELECT count(*), count(DISTINCT id) FROM insta_five.photos;
ALTER TABLE insta_five.direct SET SCHEMA shards;
ALTER SCHEMA insta_five RENAME TO insta5;

-- One number, one schema.
\set VERBOSITY default
SELECT snowflake_create_shard(5, 'other');
SELECT snowflake_create_shard(6, 'other');
SELECT to_regnamespace('other') IS NULL AS nothing_is_left;
SELECT snowflake_create_shard(5, 'insta5');
-- Nor does an object of another schema that draws from the shard's own sequence take the number: one sequence repeats no ID.
CREATE SCHEMA others;
CREATE FUNCTION others.made() RETURNS bigint LANGUAGE sql RETURN snowflake_next_id(5, 'insta5.table_id_seq');
CREATE DOMAIN others.made_id AS bigint DEFAULT snowflake_next_id(5, 'insta5.table_id_seq');
SELECT snowflake_create_shard(5, 'insta5');
SELECT object, problem FROM snowflake_check() WHERE severity = 'error' AND object = 'shard 5';
CREATE SEQUENCE others.s;
CREATE DOMAIN others.own_id AS bigint DEFAULT snowflake_next_id(5, 'others.s');
SELECT snowflake_create_shard(5, 'insta5');
SELECT object, problem FROM snowflake_check() WHERE severity = 'error' AND object = 'shard 5';
DROP SCHEMA others CASCADE;
SELECT snowflake_create_shard(7, 'insta5');
SELECT snowflake_create_shard(5, 'insta5', 1700000000000);
SELECT snowflake_create_shard(8192, 'other');
SELECT snowflake_create_shard(-1, 'other');
SELECT snowflake_create_shard(NULL, 'other') IS NULL AS nothing;
\set VERBOSITY sqlstate
SELECT snowflake_create_shard(9, 'pg_other');
SELECT snowflake_create_shard(9, 'other', 0);
SELECT snowflake_create_shard(9, 'other', 4102444800000);
CREATE FUNCTION shards.next_id() RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN 1; END';
\set VERBOSITY default
SELECT snowflake_create_shard(9, 'shards');
DROP SCHEMA insta5 CASCADE;
SELECT snowflake_create_shard(5, 'insta5');

-- Another epoch, and the ends of the numbers.
SELECT snowflake_create_shard(0, 'shard0', 1767225600000);
SELECT snowflake_create_shard(8191, 'shard8191');
SELECT snowflake_timestamp(shard0.next_id(), 1767225600000) > '2026-01-01' AS epoch, snowflake_shard(shard8191.next_id());
SELECT * FROM snowflake_shards WHERE shard IN (0, 8191) ORDER BY 1;

-- A sequence that is there already is used: one of the PL/pgSQL function's.
CREATE SCHEMA used;
CREATE SEQUENCE used.table_id_seq;
SELECT setval('used.table_id_seq', 5000) \g /dev/null
SELECT snowflake_create_shard(10, 'used');
SELECT snowflake_seq(used.next_id()) = 5001 % 1024 AS carries_on;
-- but not one that cannot hold a position
CREATE SCHEMA shapes;
CREATE SEQUENCE shapes.table_id_seq AS integer;
SELECT snowflake_create_shard(14, 'shapes');
ALTER SEQUENCE shapes.table_id_seq AS bigint NO MAXVALUE INCREMENT 2;
SELECT snowflake_create_shard(14, 'shapes');
ALTER SEQUENCE shapes.table_id_seq INCREMENT 1 MAXVALUE 1024 CYCLE;
SELECT snowflake_create_shard(14, 'shapes');
ALTER SEQUENCE shapes.table_id_seq AS bigint INCREMENT BY 1 NO MAXVALUE;
SELECT snowflake_create_shard(14, 'shapes');
SELECT snowflake_shard(shapes.next_id());

-- The function of the views and the sequence are of one row, however old the sequence.
CREATE SCHEMA two;
CREATE SEQUENCE two.first;
CREATE SEQUENCE two.second;
CREATE FUNCTION two.next_id() RETURNS bigint LANGUAGE sql RETURN snowflake_next_id(15, 'two.second');
CREATE FUNCTION two.other_id() RETURNS bigint LANGUAGE sql RETURN snowflake_next_id(15, 'two.first');
CREATE TABLE two.direct (id bigint DEFAULT snowflake_next_id(15, 'two.first'));
SELECT * FROM snowflake_shards WHERE shard = 15;

-- A snapshot of before does not show what others have made.
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT snowflake_create_shard(16, 'other');
ROLLBACK;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT snowflake_create_shard(16, 'other', 1767225600000);
ROLLBACK;

-- Any legal identifier.
SELECT snowflake_create_shard(11, 'We"ird '' Näme %s %I $$; --');
SELECT snowflake_shard("We""ird ' Näme %s %I $$; --".next_id());
SELECT snowflake_create_shard(12, rpad('x', 63, 'é')::name);
SELECT shard, schema_name, function, seq FROM snowflake_shards WHERE shard IN (11, 12) ORDER BY 1;

-- The caller's rights, and no others.
CREATE ROLE snowflake_regress_user;
SET ROLE snowflake_regress_user;
\set VERBOSITY sqlstate
SELECT snowflake_create_shard(13, 'mine');
SELECT snowflake_create_shard(13, 'shards');
SELECT shard FROM snowflake_shards WHERE shard = 5;
SELECT count(*) FROM snowflake_columns WHERE schema_name = 'insta5';
SELECT last_id_at FROM snowflake_sequences WHERE shard = 5;
RESET ROLE;
\set VERBOSITY default
CREATE SCHEMA mine AUTHORIZATION snowflake_regress_user;
SET ROLE snowflake_regress_user;
SELECT snowflake_create_shard(13, 'mine');
SELECT snowflake_shard(mine.next_id());
RESET ROLE;

-- A function that changes its shard is read anew by a session that has read it before.
CREATE SCHEMA changing;
CREATE SEQUENCE changing.s;
CREATE FUNCTION changing.next_id() RETURNS bigint LANGUAGE sql RETURN snowflake_next_id(20, 'changing.s');
SELECT snowflake_create_shard(20, 'other');
CREATE OR REPLACE FUNCTION changing.next_id() RETURNS bigint LANGUAGE sql RETURN snowflake_next_id(21, 'changing.s');
SELECT snowflake_create_shard(21, 'other');
SELECT snowflake_create_shard(20, 'other');
SELECT shard, schema_name FROM snowflake_shards WHERE shard IN (20, 21) ORDER BY 1;

-- A temporary schema is no shard, because any role may make temporary tables.
CREATE TEMP TABLE temporary (id bigint DEFAULT snowflake_next_id(22, 'changing.s'));
SELECT count(*) FROM snowflake_shards WHERE shard = 22;
SELECT table_name FROM snowflake_columns WHERE shard = 22;
DROP TABLE temporary;

-- Without a name.
SELECT snowflake_create_shard(77);
SELECT schema_name FROM snowflake_shards WHERE shard = 77;
SELECT snowflake_create_shard(77);

-- Claims of several shards are kept until the session ends.
SELECT snowflake_internal.claim_shards('{30,31}', '{claimed30,claimed31}');
BEGIN;
ROLLBACK;
SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory' AND mode = 'ExclusiveLock';
SELECT snowflake_internal.claim_shards('{32,77}', '{claimed32,claimed77}');
SELECT snowflake_internal.claim_shards('{77,32}', '{shard77,claimed32}');
\set VERBOSITY sqlstate
SELECT snowflake_internal.claim_shards('{33,8192}', '{claimed33,claimed}');
SELECT snowflake_internal.claim_shards('{33}', '{claimed33,claimed}');
SELECT snowflake_internal.claim_shards('{NULL}', '{claimed}');
\set VERBOSITY default
SELECT pg_advisory_unlock_all();

-- Keys to shards.
SELECT key, snowflake_shard_for(key, 2000) FROM unnest(ARRAY[31341, 0, 1999, 2000, -1, 9223372036854775807, -9223372036854775808]) AS key;
SELECT snowflake_shard_for(5, 1), snowflake_shard_for(8191, 8192), snowflake_shard_for(NULL, 5) IS NULL;
\set VERBOSITY sqlstate
SELECT snowflake_shard_for(5, 0);
SELECT snowflake_shard_for(5, 8193);
SELECT snowflake_shard_for(5, -1);
\set VERBOSITY default

SET client_min_messages = warning;
DROP SCHEMA shards, insta5, shard0, shard8191, used, shapes, two, changing, other, shard77, "We""ird ' Näme %s %I $$; --", mine CASCADE;
SELECT format('DROP SCHEMA %I CASCADE', rpad('x', 63, 'é')::name) \gexec
DROP ROLE snowflake_regress_user;
