-- The PL/pgSQL function of the published article, and its variants, replaced by the native one in place.
\set SHOW_CONTEXT never

CREATE SCHEMA insta5;
CREATE SEQUENCE insta5.table_id_seq;
CREATE FUNCTION insta5.next_id(OUT result bigint) AS $$
DECLARE
    our_epoch bigint := 1314220021721;
    seq_id bigint;
    now_millis bigint;
    shard_id int := 5;
BEGIN
    SELECT nextval('insta5.table_id_seq') % 1024 INTO seq_id;

    SELECT FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000) INTO now_millis;
    result := (now_millis - our_epoch) << 23;
    result := result | (shard_id << 10);
    result := result | (seq_id);
END;
$$ LANGUAGE PLPGSQL;
CREATE TABLE insta5.photos (id bigint PRIMARY KEY DEFAULT insta5.next_id(), n int);
INSERT INTO insta5.photos (n) SELECT generate_series(1, 100);
PREPARE insert_photo AS INSERT INTO insta5.photos (n) VALUES (0);
EXECUTE insert_photo;
SELECT 'insta5.next_id'::regproc::oid AS old_oid, max(id) AS old_id FROM insta5.photos \gset
GRANT EXECUTE ON FUNCTION insta5.next_id TO PUBLIC;
SELECT object, hint FROM snowflake_check() WHERE severity = 'notice';

SELECT * FROM snowflake_internal.read_legacy('insta5.next_id()');
SELECT snowflake_adopt('insta5.next_id()');
SELECT pg_get_functiondef('insta5.next_id'::regproc);
SELECT 'insta5.next_id'::regproc::oid = :old_oid AS same_function;
EXECUTE insert_photo;
INSERT INTO insta5.photos (n) VALUES (1) RETURNING id > :old_id AS above, snowflake_shard(id);
SELECT count(*), count(DISTINCT id) FROM insta5.photos;
SELECT * FROM snowflake_columns;
SELECT * FROM snowflake_check();
EXPLAIN (VERBOSE, COSTS OFF) EXECUTE insert_photo;
-- once is enough
SELECT snowflake_adopt('insta5.next_id()');
DEALLOCATE insert_photo;

-- Variants: RETURNS, names, types, comments, other epoch, one expression; the stored %% of the article.
CREATE SCHEMA "Insta 6";
CREATE SEQUENCE "Insta 6"."ID seq";
CREATE FUNCTION "Insta 6".next_id() RETURNS bigint AS $$
DECLARE
    Epoch_Ms CONSTANT numeric = 1700000000000; -- not Instagram's
    shard integer DEFAULT 6; /* of 2000 */
BEGIN
    RETURN ((floor(date_part('epoch', now()) * 1000)::bigint - epoch_ms::bigint) << 23)
         | (shard << 10) | (nextval('"Insta 6"."ID seq"') % 1024);
END
$$ LANGUAGE plpgsql SECURITY DEFINER;
SELECT snowflake_adopt('"Insta 6".next_id()');
SELECT pg_get_functiondef('"Insta 6".next_id'::regproc);
SELECT snowflake_shard("Insta 6".next_id()), snowflake_timestamp("Insta 6".next_id(), 1700000000000) > '2026-01-01' AS epoch;

-- What it cannot read with certainty it refuses, with the line; each value can be given by name.
CREATE SCHEMA insta7;
CREATE SEQUENCE insta7.table_id_seq;
CREATE FUNCTION insta7.next_id(OUT result bigint) AS $$
DECLARE
    our_epoch bigint := 1314220021721;
    seq_id bigint;
    now_millis bigint;
BEGIN
    SELECT nextval('insta7.table_id_seq') % 1024 INTO seq_id;
    SELECT FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000) INTO now_millis;
    result := (now_millis - our_epoch) << 23;
    result := result | (current_setting('app.shard')::int << 10);
    result := result | seq_id;
END;
$$ LANGUAGE plpgsql;
SELECT snowflake_adopt('insta7.next_id()');
SELECT prosrc LIKE '%current_setting%' AS untouched FROM pg_proc WHERE oid = 'insta7.next_id'::regproc;
SELECT snowflake_adopt('insta7.next_id()', shard => 7);
SELECT snowflake_adopt('insta7.next_id()', shard => 7, seq => 'insta7.table_id_seq', epoch_ms => 1314220021721);
SELECT snowflake_shard(insta7.next_id());

-- A sequence without a schema could be any.
CREATE SCHEMA insta8;
CREATE SEQUENCE insta8.table_id_seq;
CREATE FUNCTION insta8.next_id(OUT result bigint) AS $$
BEGIN
    result := ((extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721) << 23 | (8 << 10) | nextval('table_id_seq') % 1024;
END;
$$ LANGUAGE plpgsql SET search_path = insta8;
SELECT snowflake_adopt('insta8.next_id()');
SELECT snowflake_adopt('insta8.next_id()', seq => 'insta8.table_id_seq');

-- Errors.
\set VERBOSITY sqlstate
CREATE FUNCTION insta8.with_argument(a int) RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN 1; END';
CREATE FUNCTION insta8.in_sql() RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint';
CREATE FUNCTION insta8.other_type() RETURNS integer LANGUAGE plpgsql AS 'BEGIN RETURN 1; END';
CREATE FUNCTION insta8.nonsense() RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN 1; END';
SELECT snowflake_adopt('insta8.with_argument(int)');
SELECT snowflake_adopt('insta8.in_sql()');
SELECT snowflake_adopt('insta8.other_type()');
SELECT snowflake_adopt('insta8.nonsense()');
SELECT snowflake_adopt('insta8.missing()');
SELECT snowflake_adopt(NULL);
SELECT snowflake_adopt(4294967295);
SELECT snowflake_adopt('insta8.nonsense()', 5, 'insta8.table_id_seq', 1314220021721);
SELECT snowflake_adopt('insta8.nonsense()', 9000, 'insta8.table_id_seq', 1314220021721);
SELECT snowflake_adopt('insta8.nonsense()', 9, 'insta5.photos', 1314220021721);
CREATE SEQUENCE insta8.narrow AS integer;
SELECT snowflake_adopt('insta8.nonsense()', 8, 'insta8.narrow', 1314220021721);
SELECT snowflake_adopt('insta8.nonsense()', 8, 'insta8.table_id_seq', 1314220021);
ALTER FUNCTION insta8.nonsense() SET search_path = insta8, pg_catalog;
SELECT snowflake_adopt('insta8.nonsense()');
CREATE ROLE snowflake_regress_user;
SET ROLE snowflake_regress_user;
SELECT snowflake_adopt('insta8.nonsense()');
RESET ROLE;
\set VERBOSITY default

-- The owner is enough.
CREATE SCHEMA insta9 AUTHORIZATION snowflake_regress_user;
SET ROLE snowflake_regress_user;
CREATE SEQUENCE insta9.table_id_seq;
CREATE FUNCTION insta9.next_id(OUT id bigint) AS $$
BEGIN
    id := ((extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721) << 23 | (9 << 10) | nextval('insta9.table_id_seq') % 1024;
END;
$$ LANGUAGE plpgsql;
SELECT snowflake_adopt('insta9.next_id()');
SELECT snowflake_shard(insta9.next_id());
RESET ROLE;

-- IDs that a fast clock has made are passed over, where an index shows them.
CREATE SCHEMA insta10;
CREATE SEQUENCE insta10.table_id_seq;
CREATE FUNCTION insta10.next_id(OUT result bigint) AS $$
BEGIN
    result := ((extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721) << 23 | (10 << 10) | nextval('insta10.table_id_seq') % 1024;
END;
$$ LANGUAGE plpgsql;
CREATE TABLE insta10.photos (id bigint PRIMARY KEY DEFAULT insta10.next_id());
INSERT INTO insta10.photos VALUES (snowflake_encode(clock_timestamp() + interval '10 minutes', 10, 5)) RETURNING id AS ahead \gset
SELECT snowflake_adopt('insta10.next_id()');
INSERT INTO insta10.photos DEFAULT VALUES RETURNING id > :ahead AS above;

CREATE FUNCTION pg_temp.make_old(shard integer) RETURNS void LANGUAGE plpgsql AS $make$
BEGIN
    EXECUTE format($$
        CREATE SCHEMA insta%1$s;
        CREATE SEQUENCE insta%1$s.table_id_seq;
        CREATE FUNCTION insta%1$s.next_id(OUT result bigint) LANGUAGE plpgsql AS
        'BEGIN result := ((extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721) << 23
                         | (%1$s << 10) | nextval(''insta%1$s.table_id_seq'') %% 1024; END' $$, shard);
END $make$;

-- In a column of a domain over a domain, too.
SELECT pg_temp.make_old(11);
CREATE DOMAIN insta11.id AS bigint;
CREATE DOMAIN insta11.photo_id AS insta11.id CHECK (VALUE > 0);
CREATE TABLE insta11.photos (id insta11.photo_id PRIMARY KEY DEFAULT insta11.next_id());
INSERT INTO insta11.photos VALUES (snowflake_encode(clock_timestamp() + interval '10 minutes', 11, 5)) RETURNING id AS ahead \gset
SELECT snowflake_adopt('insta11.next_id()');
INSERT INTO insta11.photos DEFAULT VALUES RETURNING id > :ahead AS above;

-- What could not be looked at is said, with the statement for it.
SELECT pg_temp.make_old(12);
ALTER FUNCTION insta12.next_id() OWNER TO snowflake_regress_user;
ALTER SEQUENCE insta12.table_id_seq OWNER TO snowflake_regress_user;
GRANT ALL ON SCHEMA insta12 TO snowflake_regress_user;
CREATE SCHEMA closed;
CREATE TABLE closed.photos (id bigint PRIMARY KEY DEFAULT insta12.next_id());
CREATE TABLE insta12.unreadable (id bigint PRIMARY KEY DEFAULT insta12.next_id());
CREATE TABLE insta12."no Index" ("the ID" bigint DEFAULT insta12.next_id());
CREATE TABLE insta12.hashed (id bigint DEFAULT insta12.next_id());
CREATE INDEX ON insta12.hashed USING hash (id);
CREATE TABLE insta12.other_type (id numeric DEFAULT insta12.next_id());
INSERT INTO insta12."no Index" VALUES (snowflake_encode(clock_timestamp() + interval '10 minutes', 12, 5)) RETURNING "the ID" AS ahead \gset
GRANT SELECT ON closed.photos, insta12."no Index", insta12.hashed TO snowflake_regress_user;
BEGIN;
SET LOCAL ROLE snowflake_regress_user;
SELECT snowflake_adopt('insta12.next_id()');
SELECT snowflake_advance('insta12.table_id_seq', max("the ID")) FROM insta12."no Index";
SELECT insta12.next_id() > :ahead AS above;
ROLLBACK;
BEGIN;
SELECT snowflake_adopt('insta12.next_id()', epoch_ms => 1700000000000);
ROLLBACK;

-- A policy does not hide what is ahead.
DROP SCHEMA closed CASCADE;
DROP TABLE insta12.unreadable, insta12."no Index", insta12.hashed;
CREATE TABLE insta12.by_row (id bigint PRIMARY KEY DEFAULT insta12.next_id());
ALTER TABLE insta12.by_row ENABLE ROW LEVEL SECURITY;
GRANT SELECT ON insta12.by_row TO snowflake_regress_user;
INSERT INTO insta12.by_row VALUES (snowflake_encode(clock_timestamp() + interval '10 minutes', 12, 5)) RETURNING id AS ahead \gset
SET ROLE snowflake_regress_user;
SELECT snowflake_adopt('insta12.next_id()');
RESET ROLE;
SELECT snowflake_adopt('insta12.next_id()');
INSERT INTO insta12.by_row DEFAULT VALUES RETURNING id > :ahead AS above;

-- Nor does a snapshot of before.
SELECT pg_temp.make_old(13);
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT snowflake_adopt('insta13.next_id()', shard => 13, seq => 'insta13.table_id_seq');
ROLLBACK;

-- A sequence on which time would end soon.
ALTER SEQUENCE insta13.table_id_seq MAXVALUE 1024 CYCLE;
SELECT snowflake_adopt('insta13.next_id()');
ALTER SEQUENCE insta13.table_id_seq AS bigint INCREMENT BY 1 NO MAXVALUE;
SELECT snowflake_adopt('insta13.next_id()');
SELECT snowflake_shard(insta13.next_id());

SET client_min_messages = warning;
DROP SCHEMA insta5, "Insta 6", insta7, insta8, insta9, insta10, insta11, insta12, insta13 CASCADE;
DROP ROLE snowflake_regress_user;
