-- snowflake_check(): nothing where nothing is wrong, and each thing that can be.

SELECT snowflake_create_shard(5, 'good');
CREATE DOMAIN good.photo_id AS bigint;
CREATE DOMAIN good.album_id AS good.photo_id CHECK (VALUE > 0);
CREATE TABLE good.albums (id good.photo_id PRIMARY KEY DEFAULT good.next_id(), b good.album_id DEFAULT good.next_id());
CREATE TABLE good.by_setting (id bigint DEFAULT snowflake_next_id());
CREATE TABLE good.photos (id bigint PRIMARY KEY DEFAULT good.next_id());
INSERT INTO good.photos DEFAULT VALUES;
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
CREATE TABLE bad.types (id numeric DEFAULT snowflake_next_id(6, 'bad.s'));
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
DROP SCHEMA good, bad CASCADE;
