-- snowflake_adopt(): the published PL/pgSQL function is observed, and replaced by the native one in place.
-- Which functions it accepts is tested in sql/adopt_forms.sql.
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

SELECT snowflake_adopt('insta5.next_id()', 5);
SELECT pg_get_functiondef('insta5.next_id'::regproc);
SELECT 'insta5.next_id'::regproc::oid = :old_oid AS same_function;
EXECUTE insert_photo;
INSERT INTO insta5.photos (n) VALUES (1) RETURNING id > :old_id AS above, snowflake_shard(id);
SELECT count(*), count(DISTINCT id) FROM insta5.photos;
SELECT * FROM snowflake_columns;
SELECT * FROM snowflake_check();
EXPLAIN (VERBOSE, COSTS OFF) EXECUTE insert_photo;
-- once is enough
SELECT snowflake_adopt('insta5.next_id()', 5);
SELECT snowflake_adopt('insta5.next_id()', shard => 6, seq => 'insta5.photos', epoch_ms => 7);
DEALLOCATE insert_photo;


CREATE FUNCTION pg_temp.make_old(shard integer) RETURNS void LANGUAGE plpgsql AS $make$
BEGIN
    EXECUTE format($$
        CREATE SCHEMA insta%1$s;
        CREATE SEQUENCE insta%1$s.table_id_seq;
        CREATE FUNCTION insta%1$s.next_id(OUT result bigint) LANGUAGE plpgsql AS
        'BEGIN result := (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721) << 23
                         | (%1$s << 10) | nextval(''insta%1$s.table_id_seq'') %% 1024; END' $$, shard);
END $make$;

-- What is refused before it is called.
SELECT pg_temp.make_old(8);
CREATE FUNCTION insta8.with_argument(a int) RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN 1; END';
CREATE FUNCTION insta8.with_default(a int DEFAULT 1) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint';
CREATE FUNCTION insta8.an_integer() RETURNS integer LANGUAGE plpgsql AS 'BEGIN RETURN 1; END';
CREATE FUNCTION insta8.a_set() RETURNS SETOF bigint LANGUAGE sql AS 'SELECT 1::bigint';
CREATE FUNCTION insta8.two(OUT a bigint, OUT b bigint) LANGUAGE sql AS 'SELECT 1::bigint, 2::bigint';
CREATE PROCEDURE insta8.a_procedure() LANGUAGE sql AS 'SELECT 1';
SELECT snowflake_adopt('insta8.with_argument(int)', 8);
SELECT snowflake_adopt('row_number()', 8);
SELECT snowflake_adopt('count()', 8);
\set VERBOSITY sqlstate
SELECT snowflake_adopt('insta8.with_default(int)', 8);
SELECT snowflake_adopt('insta8.an_integer()', 8);
SELECT snowflake_adopt('insta8.a_set()', 8);
SELECT snowflake_adopt('insta8.two()', 8);
SELECT snowflake_adopt('insta8.a_procedure()', 8);
SELECT snowflake_adopt('insta8.missing()', 8);
SELECT snowflake_adopt(NULL, 8);
SELECT snowflake_adopt(4294967295, 8);
SELECT snowflake_adopt('insta8.next_id()', NULL);
SELECT snowflake_adopt('insta8.next_id()', 9000);
SELECT snowflake_adopt('insta8.next_id()', -1);
SELECT snowflake_adopt('insta8.next_id()', 5);
SELECT snowflake_adopt('insta8.next_id()', 8, 'insta5.photos');
SELECT snowflake_adopt('insta8.next_id()', 8, 0);
\set VERBOSITY default
SELECT nextval('insta8.table_id_seq') AS not_called;
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT snowflake_adopt('insta8.next_id()', 8, 'insta8.table_id_seq', 1314220021721);
ROLLBACK;

-- The owner of the function, the sequence and the schema is enough, and each of the three is needed.
CREATE ROLE snowflake_regress_user;
SELECT pg_temp.make_old(9);
SET ROLE snowflake_regress_user;
SELECT snowflake_adopt('insta9.next_id()', 9);
RESET ROLE;
GRANT USAGE ON SCHEMA insta9 TO snowflake_regress_user;
GRANT USAGE ON SEQUENCE insta9.table_id_seq TO snowflake_regress_user;
GRANT CREATE ON SCHEMA insta9 TO snowflake_regress_user;
ALTER FUNCTION insta9.next_id() OWNER TO snowflake_regress_user;
SET ROLE snowflake_regress_user;
SELECT snowflake_adopt('insta9.next_id()', 9);
RESET ROLE;
ALTER SEQUENCE insta9.table_id_seq OWNER TO snowflake_regress_user;
REVOKE CREATE ON SCHEMA insta9 FROM snowflake_regress_user;
SET ROLE snowflake_regress_user;
SELECT snowflake_adopt('insta9.next_id()', 9);
RESET ROLE;
GRANT CREATE ON SCHEMA insta9 TO snowflake_regress_user;
SET ROLE snowflake_regress_user;
SELECT snowflake_adopt('insta9.next_id()', 9);
SELECT snowflake_shard(insta9.next_id());
RESET ROLE;

-- IDs that a fast clock has made are passed over, if an index shows them.
SELECT pg_temp.make_old(10);
CREATE TABLE insta10.photos (id bigint PRIMARY KEY DEFAULT insta10.next_id());
INSERT INTO insta10.photos VALUES (snowflake_encode(clock_timestamp() + interval '10 minutes', 10, 5)) RETURNING id AS ahead \gset
SELECT snowflake_adopt('insta10.next_id()', 10);
INSERT INTO insta10.photos DEFAULT VALUES RETURNING id > :ahead AS above;

-- In a column of a domain over a domain, too.
SELECT pg_temp.make_old(11);
CREATE DOMAIN insta11.id AS bigint;
CREATE DOMAIN insta11.photo_id AS insta11.id CHECK (VALUE > 0);
CREATE TABLE insta11.photos (id insta11.photo_id PRIMARY KEY DEFAULT insta11.next_id());
INSERT INTO insta11.photos VALUES (snowflake_encode(clock_timestamp() + interval '10 minutes', 11, 5)) RETURNING id AS ahead \gset
SELECT snowflake_adopt('insta11.next_id()', 11);
INSERT INTO insta11.photos DEFAULT VALUES RETURNING id > :ahead AS above;

-- The columns that could not be looked at are told, with the statement for them.
SELECT pg_temp.make_old(12);
CREATE TABLE insta12.unreadable (id bigint PRIMARY KEY DEFAULT insta12.next_id());
CREATE TABLE insta12."no Index" ("the ID" bigint DEFAULT insta12.next_id());
CREATE TABLE insta12.hashed (id bigint DEFAULT insta12.next_id());
CREATE INDEX ON insta12.hashed USING hash (id);
CREATE TABLE insta12.other_type (id numeric DEFAULT insta12.next_id());
INSERT INTO insta12."no Index" VALUES (snowflake_encode(clock_timestamp() + interval '10 minutes', 12, 5)) RETURNING "the ID" AS ahead \gset
ALTER FUNCTION insta12.next_id() OWNER TO snowflake_regress_user;
ALTER SEQUENCE insta12.table_id_seq OWNER TO snowflake_regress_user;
ALTER TABLE insta12.unreadable OWNER TO snowflake_regress_user;
ALTER TABLE insta12."no Index" OWNER TO snowflake_regress_user;
ALTER TABLE insta12.hashed OWNER TO snowflake_regress_user;
GRANT ALL ON SCHEMA insta12 TO snowflake_regress_user;
REVOKE SELECT ON insta12.unreadable FROM snowflake_regress_user;
BEGIN;
SET LOCAL ROLE snowflake_regress_user;
SELECT snowflake_adopt('insta12.next_id()', 12);
SELECT snowflake_advance('insta12.table_id_seq', max("the ID")) FROM insta12."no Index";
SELECT insta12.next_id() > :ahead AS above;
ROLLBACK;

-- A policy does not hide IDs that are ahead, nor do deleted rows at the end of the index.
DROP TABLE insta12.unreadable, insta12."no Index", insta12.hashed;
CREATE TABLE insta12.by_row (id bigint PRIMARY KEY DEFAULT insta12.next_id(), secret text);
INSERT INTO insta12.by_row VALUES (snowflake_encode(clock_timestamp() + interval '10 minutes', 12, 5)) RETURNING id AS ahead \gset
INSERT INTO insta12.by_row SELECT :ahead + n FROM generate_series(1, 1000) AS n;
DELETE FROM insta12.by_row WHERE id > :ahead;
ALTER TABLE insta12.by_row ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE insta12.by_row OWNER TO snowflake_regress_user;
SET ROLE snowflake_regress_user;
SELECT snowflake_adopt('insta12.next_id()', 12);
SELECT insta12.next_id() BETWEEN :ahead AND :ahead + (60000::bigint << 23) AS above;
RESET ROLE;

-- Tables of other roles than the function's owner and the caller decide nothing, and neither do the objects
-- of a role that may not draw from the sequence.
CREATE ROLE snowflake_regress_other;
SELECT pg_temp.make_old(24);
GRANT USAGE ON SCHEMA insta24 TO snowflake_regress_other;
CREATE SCHEMA theirs AUTHORIZATION snowflake_regress_other;
SET ROLE snowflake_regress_other;
CREATE TABLE theirs.by_row (id bigint PRIMARY KEY DEFAULT insta24.next_id());
CREATE TABLE theirs.far (id bigint PRIMARY KEY DEFAULT insta24.next_id());
CREATE TABLE theirs.ahead (id bigint PRIMARY KEY DEFAULT insta24.next_id());
CREATE TABLE theirs.numbers (n integer DEFAULT nextval('insta24.table_id_seq'));
CREATE VIEW theirs.numbers_view AS SELECT nextval('insta24.table_id_seq');
CREATE FUNCTION theirs.number() RETURNS bigint LANGUAGE sql RETURN nextval('insta24.table_id_seq');
CREATE DOMAIN theirs.numbered AS bigint DEFAULT nextval('insta24.table_id_seq');
INSERT INTO theirs.by_row VALUES (1);
INSERT INTO theirs.far VALUES (9000000000000000000);
INSERT INTO theirs.ahead VALUES (snowflake_encode(clock_timestamp() + interval '50 minutes', 24, 5));
ALTER TABLE theirs.by_row ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
GRANT USAGE ON SCHEMA theirs TO PUBLIC;
GRANT SELECT ON ALL TABLES IN SCHEMA theirs TO PUBLIC;
RESET ROLE;
ALTER FUNCTION insta24.next_id() OWNER TO snowflake_regress_user;
ALTER SEQUENCE insta24.table_id_seq OWNER TO snowflake_regress_user;
GRANT ALL ON SCHEMA insta24 TO snowflake_regress_user;
BEGIN;
SELECT snowflake_adopt('insta24.next_id()', 24);
SELECT snowflake_timestamp(insta24.next_id()) < clock_timestamp() + interval '1 min' AS not_ahead;
ROLLBACK;
SET ROLE snowflake_regress_user;
SELECT snowflake_adopt('insta24.next_id()', 24);
SELECT snowflake_timestamp(insta24.next_id()) < clock_timestamp() + interval '1 min' AS not_ahead;
RESET ROLE;

-- A sequence that cannot hold positions, at its last value or not. The hint's transaction adopts the function.
SELECT pg_temp.make_old(13);
ALTER SEQUENCE insta13.table_id_seq AS integer MAXVALUE 1023 CYCLE;
SELECT snowflake_adopt('insta13.next_id()', 13);
SELECT snowflake_adopt('insta13.next_id()', 13, seq => 'insta13.table_id_seq');
-- One that a move has closed is not to be opened.
CREATE SEQUENCE insta13.closed MINVALUE 41 MAXVALUE 42;
SELECT snowflake_adopt('insta13.next_id()', 13, seq => 'insta13.closed');
BEGIN; ALTER SEQUENCE insta13.table_id_seq AS bigint INCREMENT BY 1 NO MAXVALUE; SELECT snowflake_adopt('insta13.next_id()', 13); COMMIT;
SELECT snowflake_shard(insta13.next_id());

-- A function that relies on CYCLE is refused until it has a mask of its own, as the hint says.
SELECT pg_temp.make_old(22);
ALTER SEQUENCE insta22.table_id_seq AS smallint MINVALUE 0 MAXVALUE 1023 CYCLE;
SELECT setval('insta22.table_id_seq', 1023);
CREATE OR REPLACE FUNCTION insta22.next_id(OUT result bigint) LANGUAGE plpgsql AS
    'BEGIN result := (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721) << 23
                     | (22 << 10) | nextval(''insta22.table_id_seq''); END';
SELECT insta22.next_id() & 1023 AS counter;
BEGIN; ALTER SEQUENCE insta22.table_id_seq AS bigint INCREMENT BY 1 NO MAXVALUE;
\set VERBOSITY terse
SELECT snowflake_adopt('insta22.next_id()', 22);
\set VERBOSITY default
COMMIT;
CREATE OR REPLACE FUNCTION insta22.next_id(OUT result bigint) LANGUAGE plpgsql AS
    'BEGIN result := (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721) << 23
                     | (22 << 10) | nextval(''insta22.table_id_seq'') % 1024; END';
SELECT setval('insta22.table_id_seq', 1023);
BEGIN; ALTER SEQUENCE insta22.table_id_seq AS bigint INCREMENT BY 1 NO MAXVALUE; SELECT snowflake_adopt('insta22.next_id()', 22); COMMIT;
SELECT snowflake_shard(insta22.next_id());

-- With an argument, such as Mastodon's timestamp_id(): milliseconds since 1970 << 16, and 16 bits of a hash and the
-- sequence of the table. The hint attaches the columns.
CREATE SCHEMA social;
CREATE FUNCTION social.timestamp_id(table_name text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    ms bigint := (date_part('epoch', now()) * 1000)::bigint;
    base bigint := ('x' || left(md5(table_name || 'salt' || ms), 4))::bit(16)::bigint;
BEGIN
    RETURN (ms << 16) | ((base + nextval('social.' || table_name || '_id_seq')) & 65535);
END $$;
CREATE TABLE social.statuses (id bigserial PRIMARY KEY, v text);
CREATE TABLE social.replies (status_id bigint REFERENCES social.statuses, id bigint DEFAULT social.timestamp_id('statuses'));
ALTER TABLE social.statuses ALTER COLUMN id SET DEFAULT social.timestamp_id('statuses');
INSERT INTO social.statuses (v) SELECT 'old' FROM generate_series(1, 100);
SELECT snowflake_adopt('social.timestamp_id(text)', 23);
SELECT snowflake_attach('social.replies', 'id', shard => 23, epoch_ms => 1314220021721);
SELECT snowflake_attach('social.statuses', 'id', shard => 23, epoch_ms => 1314220021721);
INSERT INTO social.statuses (v) VALUES ('native') RETURNING snowflake_shard(id), id > (SELECT max(id) FROM social.statuses) AS above;
INSERT INTO social.statuses VALUES (social.timestamp_id('statuses'), 'the old function goes on');
-- Columns in two schemas are of two shards: the number is left to the caller.
CREATE TABLE insta22.other (id bigint DEFAULT social.timestamp_id('statuses'));
CREATE TABLE social.other (id bigint DEFAULT social.timestamp_id('statuses'));
SELECT snowflake_adopt('social.timestamp_id(text)', 23);
-- An epoch whose time has overflowed: milliseconds since 1970, shifted by 23.
CREATE SEQUENCE social.id_seq;
CREATE FUNCTION social.since_1970() RETURNS bigint LANGUAGE plpgsql AS
    'BEGIN RETURN floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint << 23 | (23 << 10) | nextval(''social.id_seq'') % 1024; END';
CREATE TABLE social.negative (id bigint PRIMARY KEY DEFAULT social.since_1970());
INSERT INTO social.negative DEFAULT VALUES RETURNING id < 0 AS negative;
DO $$
DECLARE
    message text;
    detail text;
    hint text;
BEGIN
    PERFORM snowflake_adopt('social.since_1970()', 23);
EXCEPTION WHEN datetime_field_overflow THEN
    GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    RAISE WARNING '%', message USING DETAIL = regexp_replace(detail, '-\d+', '-N'), HINT = hint;
END $$;
SELECT snowflake_attach('social.negative', 'id', shard => 23, seq => 'social.id_seq', epoch_ms => 1314220021721);
INSERT INTO social.negative DEFAULT VALUES RETURNING snowflake_shard(id), id > (SELECT max(id) FROM social.negative) AS above;

-- Another sequence of the schema that the transaction has drawn the same number from is not taken for it.
SELECT pg_temp.make_old(20);
CREATE SEQUENCE insta20.another;
BEGIN;
SELECT nextval('insta20.another');
SELECT snowflake_adopt('insta20.next_id()', 20);
COMMIT;

-- The sequence is locked as soon as it is known, before the third call, and no other sequence of the schema is.
SELECT pg_temp.make_old(21);
CREATE SEQUENCE insta21.another;
CREATE FUNCTION insta21.watch_id() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('app.seen', current_setting('app.seen') || CASE WHEN EXISTS (
        SELECT FROM pg_locks WHERE relation = 'insta21.table_id_seq'::regclass AND mode = 'ShareRowExclusiveLock' AND pid = pg_backend_pid())
        THEN 'L' ELSE '-' END, false);
    RETURN insta21.next_id();
END $$;
SET app.seen = '';
BEGIN;
SELECT snowflake_adopt('insta21.watch_id()', 21);
SELECT current_setting('app.seen') ~ '^--L{19,}$' AS locked_after_two;
SELECT DISTINCT relation::regclass FROM pg_locks WHERE pid = pg_backend_pid() AND relation::regclass::text ~ '^insta21' ORDER BY 1;
ROLLBACK;
SET app.seen = '';
SELECT snowflake_adopt('insta21.watch_id()', 21, seq => 'insta21.table_id_seq');
SELECT current_setting('app.seen') ~ '^L{21,}$' AS locked_first;

-- A sequence that others draw from, too. A query that reads the sequence does not, nor does the function itself.
SELECT pg_temp.make_old(14);
CREATE OR REPLACE FUNCTION insta14.next_id(OUT result bigint) LANGUAGE sql
    RETURN (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721) << 23
           | (14 << 10) | nextval('insta14.table_id_seq') % 1024;
CREATE VIEW insta14.progress AS SELECT last_value FROM insta14.table_id_seq;
CREATE TABLE insta14.native (id bigint DEFAULT snowflake_next_id(14, 'insta14.table_id_seq'));
CREATE TABLE insta14.numbers (n bigint DEFAULT nextval('insta14.table_id_seq'));
SELECT snowflake_adopt('insta14.next_id()', 14);
ALTER TABLE insta14.numbers ADD narrow integer DEFAULT nextval('insta14.table_id_seq');
SELECT snowflake_adopt('insta14.next_id()', 14);
SELECT snowflake_adopt('insta14.next_id()', 14, seq => 'insta14.table_id_seq');
ALTER TABLE insta14.numbers ALTER narrow DROP DEFAULT;
CREATE VIEW insta14.draws AS SELECT nextval('insta14.table_id_seq') AS n;
SELECT snowflake_adopt('insta14.next_id()', 14, seq => 'insta14.table_id_seq');
DROP VIEW insta14.draws;
SELECT snowflake_adopt('insta14.next_id()', 14, seq => 'insta14.table_id_seq');
INSERT INTO insta14.numbers DEFAULT VALUES RETURNING n > 1::bigint << 50 AS above;
-- an identity column draws, too
CREATE SCHEMA insta15;
CREATE TABLE insta15.photos (id integer GENERATED ALWAYS AS IDENTITY);
CREATE FUNCTION insta15.next_id(OUT result bigint) LANGUAGE plpgsql AS
    'BEGIN result := (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721) << 23
                     | (15 << 10) | nextval(''insta15.photos_id_seq'') % 1024; END';
ALTER SEQUENCE insta15.photos_id_seq AS bigint;
SELECT snowflake_adopt('insta15.next_id()', 15);

-- Where one function of a sequence was adopted, the next one neither sets it back nor ahead.
SELECT pg_temp.make_old(16);
CREATE FUNCTION insta16.other_id(OUT result bigint) LANGUAGE plpgsql AS
    'BEGIN result := (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721) << 23
                     | (16 << 10) | nextval(''insta16.table_id_seq'') % 1024; END';
SELECT snowflake_adopt('insta16.next_id()', 16);
SELECT max(insta16.next_id()) AS last_id FROM generate_series(1, 100000) \gset
SELECT snowflake_adopt('insta16.other_id()', 16);
SELECT insta16.next_id() > :last_id AS above;
SELECT lead < interval '1 s' AS not_ahead FROM snowflake_sequences WHERE shard = 16;

-- A sequence so far ahead that no native ID could be made: the old function stays.
SELECT pg_temp.make_old(17);
SELECT setval('insta17.table_id_seq', (extract(epoch FROM now() + interval '10 years') * 1000)::bigint << 10) > 0 AS set;
\set VERBOSITY sqlstate
SELECT snowflake_adopt('insta17.next_id()', 17);
\set VERBOSITY default
SELECT l.lanname FROM pg_proc AS p JOIN pg_language AS l ON l.oid = p.prolang WHERE p.oid = 'insta17.next_id()'::regprocedure;

-- A sequence whose value has all bits that are set for the last call.
SELECT pg_temp.make_old(25);
SELECT setval('insta25.table_id_seq', (1 << 23) - 600);
SELECT snowflake_adopt('insta25.next_id()', 25);

-- At the last moment the schema's name goes to another schema, or that of the sequence's schema does. Neither
-- is a second function made nor is another sequence drawn from.
SELECT pg_temp.make_old(18);
CREATE SCHEMA insta19;
CREATE FUNCTION insta19.next_id() RETURNS bigint LANGUAGE plpgsql AS
    'BEGIN RETURN (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721) << 23
                  | (19 << 10) | nextval(''insta18.table_id_seq'') % 1024; END';
CREATE FUNCTION pg_temp.swap() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('ALTER SCHEMA %1$I RENAME TO moved; CREATE SCHEMA %1$I; CREATE SEQUENCE %1$I.table_id_seq', current_setting('app.swapped'));
END $$;
CREATE EVENT TRIGGER snowflake_regress_swap ON ddl_command_start WHEN TAG IN ('CREATE FUNCTION') EXECUTE FUNCTION pg_temp.swap();
SET app.swapped = insta19;
SELECT snowflake_adopt('insta19.next_id()', 19, seq => 'insta18.table_id_seq');
SET app.swapped = insta18;
SELECT snowflake_adopt('insta19.next_id()', 19, seq => 'insta18.table_id_seq');
DROP EVENT TRIGGER snowflake_regress_swap;

-- A function that draws from no sequence, where none was drawn from in the session.
\c
\set SHOW_CONTEXT never
CREATE FUNCTION insta18.constant() RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint';
SELECT snowflake_adopt('insta18.constant()', 18);

SET client_min_messages = warning;
DROP SCHEMA insta5, insta8, insta9, insta10, insta11, insta12, insta13, insta14, insta15, insta16, insta17, insta18, insta19, insta20, insta21, insta22, insta24, insta25, social, theirs CASCADE;
DROP ROLE snowflake_regress_user, snowflake_regress_other;
