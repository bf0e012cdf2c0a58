-- snowflake_check(): nothing where nothing is wrong, and each thing that can be.

SELECT snowflake_create_shard(5, 'good');
CREATE DOMAIN good.photo_id AS bigint;
CREATE DOMAIN good.album_id AS good.photo_id CHECK (VALUE > 0);
CREATE TABLE good.albums (id good.photo_id PRIMARY KEY DEFAULT good.next_id(), b good.album_id DEFAULT good.next_id());
CREATE TABLE good.by_setting (id bigint DEFAULT snowflake_next_id());
CREATE TABLE good.photos (id bigint PRIMARY KEY DEFAULT good.next_id());
CREATE TABLE good.as_text (id varchar DEFAULT good.next_id(), number numeric DEFAULT good.next_id());
CREATE DOMAIN good.drawn_id AS bigint DEFAULT good.next_id();
CREATE TABLE good.by_domain (id good.drawn_id PRIMARY KEY);
CREATE TABLE good.parted (id bigint PRIMARY KEY DEFAULT good.next_id()) PARTITION BY RANGE (id);
CREATE SCHEMA good_archive;
CREATE TABLE good_archive.part PARTITION OF good.parted DEFAULT;
CREATE TEMP TABLE copied (LIKE good.photos INCLUDING ALL);
CREATE FUNCTION good.tenant() RETURNS bigint LANGUAGE sql STABLE AS 'SELECT 1::bigint';
CREATE TABLE good.tenants (id bigint DEFAULT good.tenant());
-- as snowflake-shard move leaves it behind
CREATE SEQUENCE good.closed MINVALUE 41 MAXVALUE 42;
CREATE TABLE good.fenced (id bigint DEFAULT snowflake_next_id(5, 'good.closed'));
INSERT INTO good.photos DEFAULT VALUES;
INSERT INTO good.by_domain DEFAULT VALUES;
INSERT INTO good.parted DEFAULT VALUES;
INSERT INTO copied DEFAULT VALUES;
SELECT * FROM snowflake_check();

CREATE SCHEMA bad;
CREATE SEQUENCE bad.s;
-- two schemas with one number: not through snowflake_create_shard(), but by hand it can be done
CREATE TABLE bad.same_shard (id bigint DEFAULT snowflake_next_id(5, 'bad.s'));
-- two epochs
CREATE TABLE bad.two_epochs (id bigint DEFAULT snowflake_next_id(5, 'bad.s', 1767225600000));
-- what no ID can be made with
CREATE TABLE bad.out_of_range (id bigint DEFAULT snowflake_next_id(9000, 'bad.s'));
CREATE SEQUENCE bad.narrow AS integer;
CREATE SEQUENCE bad.by_two INCREMENT 2;
CREATE SEQUENCE bad.small MAXVALUE 1000000;
CREATE TABLE bad.shapes (
    a bigint DEFAULT snowflake_next_id(6, 'bad.narrow'),
    b bigint DEFAULT snowflake_next_id(6, 'bad.by_two'),
    c bigint DEFAULT snowflake_next_id(6, 'bad.small'));
CREATE DOMAIN bad.small_id AS smallint;
CREATE TABLE bad.types (
    a integer DEFAULT snowflake_next_id(6, 'bad.s'),
    b bad.small_id DEFAULT snowflake_next_id(6, 'bad.s'),
    c float8 DEFAULT snowflake_next_id(6, 'bad.s'));
CREATE TABLE bad.no_sequence (id bigint DEFAULT snowflake_next_id(6, 'bad.types'));
-- the clock
CREATE SEQUENCE bad.ahead;
CREATE SEQUENCE bad.far_ahead;
SELECT setval('bad.ahead', ((extract(epoch FROM clock_timestamp()) * 1000)::bigint + 600000) << 10) \g /dev/null
SELECT setval('bad.far_ahead', ((extract(epoch FROM clock_timestamp()) * 1000)::bigint + 36000000) << 10) \g /dev/null
CREATE TABLE bad.clock (
    a bigint DEFAULT snowflake_next_id(6, 'bad.ahead'),
    b bigint DEFAULT snowflake_next_id(6, 'bad.far_ahead'));
-- the time that is left
CREATE SEQUENCE bad.old;
CREATE TABLE bad.old_table (id bigint DEFAULT snowflake_next_id(6, 'bad.old', 900000000000));
-- a crash would take it back
CREATE UNLOGGED SEQUENCE bad.unlogged;
CREATE TABLE bad.logged (id bigint DEFAULT snowflake_next_id(6, 'bad.unlogged'));
-- nothing to be read
CREATE TABLE bad.computed (
    id bigint DEFAULT snowflake_next_id(6, ('bad.' || 's')::regclass),
    shard bigint DEFAULT snowflake_next_id(length(current_user), 'bad.s'),
    epoch bigint DEFAULT snowflake_next_id(6, 'bad.s', extract(epoch FROM now())::bigint));
-- more than one
CREATE FUNCTION bad.two_shards() RETURNS bigint LANGUAGE sql RETURN CASE WHEN random() < 0.5 THEN snowflake_next_id(6, 'bad.s') ELSE snowflake_next_id(7, 'bad.s') END;
CREATE TABLE bad.two_shards (id bigint DEFAULT bad.two_shards());
CREATE TABLE bad.two_calls (id bigint DEFAULT coalesce(snowflake_next_id(6, 'bad.s'), snowflake_next_id(7, 'bad.s')));
CREATE DOMAIN bad.two_ids AS bigint DEFAULT coalesce(snowflake_next_id(6, 'bad.s'), bad.two_shards());
-- still the old one
CREATE FUNCTION bad.next_id(OUT result bigint) LANGUAGE plpgsql AS 'BEGIN result := nextval(''bad.s'') % 1024; END';

\x on
SELECT severity, object, regexp_replace(problem, '\d+ s behind', '# s behind') AS problem, hint FROM snowflake_check();
\x off

-- An ordinary user sees what he may.
CREATE ROLE snowflake_regress_user;
SET ROLE snowflake_regress_user;
SELECT severity, object FROM snowflake_check() WHERE object LIKE '%ahead';
RESET ROLE;
DROP ROLE snowflake_regress_user;

SET client_min_messages = warning;
DROP SCHEMA good, good_archive, bad CASCADE;
DROP TABLE copied;
RESET client_min_messages;

-- A sequence that was set far ahead, and has not been drawn from since.
SELECT snowflake_create_shard(5, 'insta5');
SELECT ((extract(epoch FROM clock_timestamp()) * 1000)::bigint + 36000000) << 10 AS in_ten_hours \gset
SELECT setval('insta5.table_id_seq', :in_ten_hours, false) \g /dev/null
SELECT severity, object, regexp_replace(problem, '\d+ s behind', '# s behind') AS problem FROM snowflake_check();
ALTER SEQUENCE insta5.table_id_seq RESTART WITH :in_ten_hours;
SELECT severity, object, regexp_replace(problem, '\d+ s behind', '# s behind') AS problem FROM snowflake_check();
SELECT seq, shard, last_id_at, last_counter, lead FROM snowflake_sequences; -- nothing is drawn yet
ALTER SEQUENCE insta5.table_id_seq RESTART WITH 1;
-- As an ID it is read with the epoch of the call.
CREATE SEQUENCE insta5.young_id_seq;
CREATE TABLE insta5.young (id bigint DEFAULT snowflake_next_id(5, 'insta5.young_id_seq', 1767225600000));
SELECT setval('insta5.young_id_seq', snowflake_encode(now() + interval '10 hours', 5, 0, 1767225600000), false) \g /dev/null
SELECT severity, object, regexp_replace(problem, '\d+ s behind', '# s behind') AS problem FROM snowflake_check();
DROP TABLE insta5.young;
ALTER SEQUENCE insta5.young_id_seq RESTART WITH 1;

-- The setting and a schema.
SET snowflake.shard = 5;
SELECT * FROM snowflake_check();
SET snowflake.shard = 6;
SELECT * FROM snowflake_check();
RESET snowflake.shard;
CREATE ROLE snowflake_regress_app;
ALTER ROLE snowflake_regress_app SET snowflake.shard = 5;
DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET snowflake.shard = 5', current_database()); END $$;
SELECT severity, object, problem FROM snowflake_check();
DO $$ BEGIN EXECUTE format('ALTER DATABASE %I RESET snowflake.shard', current_database()); END $$;
DROP ROLE snowflake_regress_app;

-- A copy of a table has the DEFAULTs of the other.
CREATE SEQUENCE insta5.photos_id_seq;
CREATE TABLE insta5.photos (
    id bigint PRIMARY KEY DEFAULT insta5.next_id(),
    own bigint DEFAULT snowflake_next_id(5, 'insta5.photos_id_seq'));
SELECT snowflake_create_shard(6, 'insta6');
CREATE TABLE insta6.photos (LIKE insta5.photos INCLUDING ALL);
CREATE TABLE insta6.half (id bigint DEFAULT snowflake_next_id(6, 'insta5.photos_id_seq'));
\x on
SELECT * FROM snowflake_check();
\x off
DROP TABLE insta6.photos, insta6.half;

-- IDs above their sequence; ahead of the clock they can come again.
INSERT INTO insta5.photos (id) SELECT snowflake_encode(now() + n * interval '1 min', 5, 0) FROM generate_series(-9, 10) AS n;
SELECT severity, object, regexp_replace(problem, '\d+', '#', 'g') AS problem, regexp_replace(hint, '\d{16,}', '#') AS hint FROM snowflake_check();
SELECT snowflake_advance('insta5.table_id_seq', max(id)) FROM insta5.photos;
SELECT severity, object FROM snowflake_check();
ALTER SEQUENCE insta5.table_id_seq RESTART;
-- an index in the other direction, with NULLs, and deleted rows at its end; no index; one of some rows
CREATE TABLE insta5.ends (a bigint DEFAULT insta5.next_id(), b bigint DEFAULT insta5.next_id(), c bigint DEFAULT insta5.next_id(), d bigint DEFAULT insta5.next_id());
CREATE INDEX ON insta5.ends (a DESC);
CREATE INDEX ON insta5.ends (b NULLS FIRST, a);
CREATE INDEX ON insta5.ends (d) WHERE d IS NOT NULL;
CREATE INDEX ON insta5.ends USING hash (c);
INSERT INTO insta5.ends SELECT id, id, id, id FROM insta5.photos;
INSERT INTO insta5.ends VALUES (NULL, NULL, NULL, NULL);
DELETE FROM insta5.photos;
SELECT severity, object FROM snowflake_check();
DELETE FROM insta5.ends WHERE a > snowflake_max_id(now());
SELECT severity, object, regexp_replace(problem, '\d{9,}', '#', 'g') AS problem, regexp_replace(hint, '\d{16,}', '#') AS hint FROM snowflake_check();
DELETE FROM insta5.ends;
SELECT * FROM snowflake_check();
-- Another epoch, which the hint names; further ahead than new IDs may be, so no advance; several sequences
CREATE TABLE insta5.several (
    id bigint PRIMARY KEY DEFAULT snowflake_next_id(5, 'insta5.young_id_seq', 1767225600000),
    old bigint UNIQUE DEFAULT insta5.next_id(),
    several bigint UNIQUE DEFAULT coalesce(insta5.next_id(), snowflake_next_id(5, 'insta5.photos_id_seq')));
INSERT INTO insta5.several SELECT snowflake_encode(t, 5, 0, 1767225600000), snowflake_encode(t + interval '1 day', 5, 0), snowflake_encode(t, 5, 0)
FROM (SELECT now() + interval '10 min') AS n(t);
SELECT severity, object, regexp_replace(problem, '\d+', '#', 'g') AS problem, regexp_replace(hint, '\d{16,}', '#') AS hint FROM snowflake_check();
SELECT snowflake_advance('insta5.photos_id_seq', max(several)), snowflake_advance('insta5.young_id_seq', max(id), 1767225600000) FROM insta5.several;
SELECT severity, object FROM snowflake_check();

-- Positions, as a client stores them that calls nextval(): with IDs above them, and in an index from the largest down. The IDs of
-- an epoch's first days are as small.
CREATE TABLE insta5.positions (
    id bigint PRIMARY KEY DEFAULT insta5.next_id(),
    young bigint DEFAULT snowflake_next_id(5, 'insta5.young_id_seq', 1767225600000));
CREATE INDEX ON insta5.positions (young DESC);
INSERT INTO insta5.positions VALUES (DEFAULT), (1), (1 << 30);
INSERT INTO insta5.positions SELECT insta5.next_id(), snowflake_encode('2026-01-03 12:00+00', 5, i, 1767225600000) FROM generate_series(1, 3) AS i;
SELECT count(*) FROM snowflake_check() WHERE object ~ 'positions';
INSERT INTO insta5.positions VALUES (nextval('insta5.table_id_seq'), nextval('insta5.table_id_seq'));
INSERT INTO insta5.positions DEFAULT VALUES;
SELECT severity, object, regexp_replace(problem, '\d{9,}', '#') AS problem, regexp_replace(hint, '\d{9,}', '#') AS hint FROM snowflake_check() WHERE object ~ 'positions';
DROP TABLE insta5.positions;

-- The IDs of other shards, as snowflake-shard verify counts them: of a domain, in the middle and at both ends of an index, in one
-- table without its children. Numbers below 2^53 are not counted.
CREATE DOMAIN insta5.some_id AS bigint;
CREATE TABLE insta5.mixed (id insta5.some_id PRIMARY KEY DEFAULT insta5.next_id(), down bigint, plain bigint, small integer, dropped bigint);
CREATE INDEX ON insta5.mixed (down DESC);
CREATE TABLE insta5.mixed_child () INHERITS (insta5.mixed);
ALTER TABLE insta5.mixed DROP COLUMN dropped;
INSERT INTO insta5.mixed SELECT id, id, id, i FROM generate_series(1, 30000) AS i,
    snowflake_encode('2025-01-01 00:00+00'::timestamptz + i * interval '1 s', CASE WHEN i IN (1, 15000, 30000) THEN 6 ELSE 5 END, 0) AS id;
INSERT INTO insta5.mixed VALUES (1, NULL, 1), (6 << 10, (1::bigint << 53) - 1, (1::bigint << 53) - 1), (-1, -1, -1);
INSERT INTO insta5.mixed_child SELECT id, id, id FROM snowflake_encode('2024-01-01 00:00+00', 6, 0) AS id;
ANALYZE insta5.mixed;
SELECT t.tbl, a.attname, o.count, snowflake_decode(o.smallest)
FROM (VALUES ('insta5.mixed'::regclass), ('insta5.mixed_child')) AS t (tbl)
JOIN pg_attribute AS a ON a.attrelid = t.tbl AND a.attname IN ('id', 'down', 'plain'),
    snowflake_internal.other_ids(t.tbl, a.attnum, 5, 0) AS o ORDER BY 1, 2;
-- A sample is of some pages, and of both ends where an index begins with the column; each row is counted once.
SELECT a.attname, o.count BETWEEN 2 AND 3 AS both_ends, snowflake_decode(o.smallest)
FROM pg_attribute AS a, snowflake_internal.other_ids(a.attrelid, a.attnum, 5, 1) AS o
WHERE a.attrelid = 'insta5.mixed'::regclass AND a.attname IN ('id', 'down');
SELECT count BETWEEN 5000 AND 25000 AS is_sampled FROM snowflake_internal.other_ids('insta5.mixed'::regclass, 3, 6, 15000);
SELECT count FROM snowflake_internal.other_ids('insta5.mixed'::regclass, 3, 5, 100000);
-- Columns and tables that are none.
SELECT FROM snowflake_internal.other_ids('insta5.mixed'::regclass, 4, 5, 0);
SELECT FROM snowflake_internal.other_ids('insta5.mixed'::regclass, 5, 5, 0);
SELECT FROM snowflake_internal.other_ids('insta5.mixed'::regclass, -1, 5, 0);
SELECT FROM snowflake_internal.other_ids('insta5.mixed_pkey'::regclass, 1, 5, 0);
-- Privileges as for SELECT: on the schema, on the column or the table, and of all rows.
CREATE ROLE snowflake_regress_user;
SELECT 'insta5.mixed'::regclass::oid AS mixed \gset
GRANT SELECT (id) ON insta5.mixed TO snowflake_regress_user;
SET ROLE snowflake_regress_user;
SELECT FROM snowflake_internal.other_ids(:mixed, 1, 5, 0);
RESET ROLE;
GRANT USAGE ON SCHEMA insta5 TO snowflake_regress_user;
SET ROLE snowflake_regress_user;
SELECT count FROM snowflake_internal.other_ids(:mixed, 1, 5, 0);
SELECT FROM snowflake_internal.other_ids(:mixed, 2, 5, 0);
RESET ROLE;
ALTER TABLE insta5.mixed ENABLE ROW LEVEL SECURITY;
SET ROLE snowflake_regress_user;
SELECT FROM snowflake_internal.other_ids(:mixed, 1, 5, 0);
SET row_security = off;
SELECT FROM snowflake_internal.other_ids(:mixed, 1, 5, 0);
RESET row_security;
RESET ROLE;
DROP TABLE insta5.mixed, insta5.mixed_child;
DROP DOMAIN insta5.some_id;
DROP OWNED BY snowflake_regress_user;
DROP ROLE snowflake_regress_user;

-- Only what the caller may read: the sequence, all rows of the column, the schema. The others are named.
CREATE ROLE snowflake_regress_user;
SET ROLE snowflake_regress_user;
\x on
SELECT * FROM snowflake_check() WHERE problem LIKE 'not looked at%';
\x off
RESET ROLE;
GRANT USAGE ON SCHEMA insta5 TO snowflake_regress_user;
GRANT SELECT ON SEQUENCE insta5.table_id_seq TO snowflake_regress_user;
GRANT SELECT (old) ON insta5.several TO snowflake_regress_user;
SET ROLE snowflake_regress_user;
SELECT object FROM snowflake_check();
RESET ROLE;
REVOKE SELECT ON SEQUENCE insta5.table_id_seq FROM snowflake_regress_user;
SET ROLE snowflake_regress_user;
SELECT object FROM snowflake_check();
RESET ROLE;
GRANT USAGE ON SEQUENCE insta5.table_id_seq TO snowflake_regress_user;
REVOKE USAGE ON SCHEMA insta5 FROM snowflake_regress_user;
SET ROLE snowflake_regress_user;
SELECT object FROM snowflake_check();
RESET ROLE;
GRANT USAGE ON SCHEMA insta5 TO snowflake_regress_user;
ALTER TABLE insta5.several ENABLE ROW LEVEL SECURITY;
GRANT SELECT ON insta5.several TO snowflake_regress_user;
SET ROLE snowflake_regress_user;
SELECT problem, hint FROM snowflake_check();
RESET ROLE;
SET client_min_messages = warning;
DROP SCHEMA insta5, insta6 CASCADE;
DROP ROLE snowflake_regress_user;

-- A DEFAULT that counts on from an ID, as Django's change from AutoField to BigAutoField leaves it.
CREATE SCHEMA counted;
CREATE TABLE counted.migrated (id serial PRIMARY KEY, v text);
CREATE TABLE counted.by_position (id bigserial PRIMARY KEY, v text);
CREATE TABLE counted.other (id bigserial PRIMARY KEY);
CREATE DOMAIN counted.number AS bigint;
CREATE TABLE counted.shares (id counted.number PRIMARY KEY);
-- no findings: small numbers, large ones from the start on, IDs of another kind, an expression, temporary copies
CREATE TABLE counted.serials (a bigserial, b serial, c smallserial, d bigint GENERATED ALWAYS AS IDENTITY);
INSERT INTO counted.serials DEFAULT VALUES;
CREATE SEQUENCE counted.large START 1800000000000000;
CREATE SEQUENCE counted.of_twitter;
CREATE SEQUENCE counted.far;
SELECT setval('counted.of_twitter', (1546300800000 - 1288834974657) << 22), setval('counted.far', snowflake_encode('2040-01-01', 5, 0)) \g /dev/null
CREATE TABLE counted.not_ours (a bigint DEFAULT nextval('counted.large'), b bigint DEFAULT nextval('counted.of_twitter'), c bigint DEFAULT nextval('counted.far'));
INSERT INTO counted.not_ours DEFAULT VALUES;
SELECT snowflake_attach('counted.migrated', shard => 5), snowflake_attach('counted.by_position'), snowflake_attach('counted.other');
SET client_min_messages = warning;
INSERT INTO counted.migrated (v) VALUES ('native');
INSERT INTO counted.by_position (v) VALUES ('native');
CREATE TABLE counted.masked (id bigint DEFAULT nextval('counted.migrated_id_seq') % 1024);
CREATE TEMP TABLE copied (LIKE counted.by_position INCLUDING DEFAULTS);
SELECT * FROM snowflake_check();
ALTER TABLE counted.migrated ALTER COLUMN id SET DEFAULT nextval('counted.migrated_id_seq');
SELECT setval('counted.migrated_id_seq', max(id)) FROM counted.migrated \g /dev/null
INSERT INTO counted.migrated (v) VALUES ('one more') RETURNING id - (SELECT max(id) FROM counted.migrated) AS more;
ALTER TABLE counted.by_position ALTER COLUMN id SET DEFAULT nextval('counted.by_position_id_seq');
ALTER TABLE pg_temp.copied ALTER COLUMN id SET DEFAULT nextval('counted.by_position_id_seq');
ALTER TABLE counted.shares ALTER COLUMN id SET DEFAULT nextval('counted.other_id_seq');
SELECT snowflake_next_id(5, 'counted.other_id_seq') > 0 AS drawn;
CREATE VIEW counted.findings AS SELECT severity, object, regexp_replace(problem, '\d{9,}', '#') AS problem, hint FROM snowflake_check();
TABLE counted.findings;
-- The caller must be able to read the sequence.
CREATE ROLE snowflake_regress_user;
GRANT USAGE ON SCHEMA counted TO snowflake_regress_user;
GRANT SELECT ON counted.findings TO snowflake_regress_user;
SET ROLE snowflake_regress_user;
SELECT count(*) FROM snowflake_check();
RESET ROLE;
-- The hints mend it. Without another column in the schema the shard is not known.
SELECT hint FROM counted.findings \gexec
TABLE counted.findings;
INSERT INTO counted.migrated (v) VALUES ('native') RETURNING snowflake_shard(id), id > (SELECT max(id) FROM counted.migrated) AS above;
-- In another epoch, one that is in use.
CREATE SCHEMA alone;
CREATE SCHEMA young;
CREATE TABLE alone.t (id bigserial);
CREATE TABLE young.t (id bigserial);
SELECT snowflake_attach('alone.t', shard => 6, epoch_ms => 1767225600000), snowflake_attach('young.t', shard => 7, epoch_ms => 1767225600000);
INSERT INTO alone.t DEFAULT VALUES;
ALTER TABLE alone.t ALTER COLUMN id SET DEFAULT nextval('alone.t_id_seq');
SELECT setval('alone.t_id_seq', max(id)) FROM alone.t \g /dev/null
TABLE counted.findings;
DROP SCHEMA counted, alone, young CASCADE;
DROP TABLE pg_temp.copied;
DROP ROLE snowflake_regress_user;

-- Functions that may be those of the PL/pgSQL scheme, whatever their names and languages.
CREATE SCHEMA old;
CREATE SEQUENCE old.s;
CREATE DOMAIN old.id AS bigint;
CREATE FUNCTION old.id_generator(OUT result bigint) LANGUAGE plpgsql AS 'BEGIN result := nextval(''old.s''); END';
CREATE FUNCTION old."In SQL"() RETURNS bigint LANGUAGE sql AS $$ SELECT nextval('old.s') $$;
CREATE FUNCTION old.native_in_text() RETURNS bigint LANGUAGE sql AS $$ SELECT snowflake_next_id(5, 'old.s') $$;
CREATE FUNCTION old.native() RETURNS bigint LANGUAGE sql RETURN snowflake_next_id(5, 'old.s');
CREATE FUNCTION old.not_called() RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint';
CREATE FUNCTION old.with_argument(a integer) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint';
CREATE FUNCTION old.an_integer() RETURNS integer LANGUAGE sql AS 'SELECT 1';
CREATE TABLE old.t (
    a bigint DEFAULT old.id_generator(), b old.id DEFAULT old."In SQL"(), c bigint DEFAULT old.native_in_text(), d bigint DEFAULT old.native(),
    e bigint DEFAULT old.with_argument(1), f bigint DEFAULT old.an_integer(), g text DEFAULT old.not_called(), h bigint DEFAULT nextval('old.s'));
\x on
SELECT * FROM snowflake_check();
\x off
DROP SCHEMA old CASCADE;

-- The copy of a sequence on a Citus worker makes no IDs, and is not to be widened.
CREATE SCHEMA tenant;
SELECT snowflake_create_shard(5, 'tenant');
CREATE TABLE tenant.t (id bigint PRIMARY KEY DEFAULT tenant.next_id());
INSERT INTO tenant.t VALUES (snowflake_encode(now() + interval '1 minute', 5, 0)); -- as it comes from the coordinator
ALTER SEQUENCE tenant.table_id_seq MINVALUE 1688849860263937 MAXVALUE 1970324836974593 START 1688849860263937 RESTART;
\x on
SELECT * FROM snowflake_check();
\x off
DROP SCHEMA tenant CASCADE;
