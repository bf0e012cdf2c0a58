-- The statements in hints run as they are typed where the extension is in a schema that is not in the search_path.
BEGIN;
DROP EXTENSION snowflake;
CREATE SCHEMA "My %s Schema";
CREATE EXTENSION snowflake SCHEMA "My %s Schema";
SELECT "My %s Schema".snowflake_create_shard(5, 'insta5');
CREATE FUNCTION hint_of(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    hint text;
BEGIN
    EXECUTE statement;
    RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT;
    RETURN hint;
END $$;

CREATE TABLE without_shard (id bigint PRIMARY KEY);
CREATE TABLE insta5.parts (id bigint) PARTITION BY RANGE (id);
CREATE TABLE insta5.part PARTITION OF insta5.parts DEFAULT;
CREATE TABLE insta5.photos (id bigint PRIMARY KEY DEFAULT insta5.next_id());
CREATE TABLE insta5.likes (id serial PRIMARY KEY, photo_id bigint REFERENCES insta5.photos);
CREATE VIEW insta5.of_likes AS SELECT id FROM insta5.likes;
CREATE TABLE insta5.one (id bigserial);
CREATE TABLE insta5.other (id bigint DEFAULT nextval('insta5.one_id_seq'));
CREATE SCHEMA insta6;
CREATE FUNCTION insta6.next_id() RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN 1; END';
\pset format unaligned
\pset tuples_only on
SELECT hint_of('SELECT "My %s Schema".snowflake_' || s) FROM (VALUES
    ('attach(NULL, ''id'')'), ('attach(''without_shard'')'), ('attach(''insta5.part'')'), ('attach(''insta5.photos'', shard => 6)'),
    ('attach(''insta5.likes'', ''photo_id'')'), ('attach(''insta5.likes'')'), ('attach(''insta5.one'')'),
    ('create_shard(6, ''insta6'')'), ('create_partitions(NULL, now(), now(), ''1 day'')'),
    ('create_partitions(''insta5.parts'', now(), now() + interval ''1 day'', ''1 day'')'),
    ('create_partitions(''insta5.parts'', NULL, now(), ''1 day'')')) AS v(s);

-- One that snowflake_check() gives.
DROP TABLE insta5.other;
SELECT setval('insta5.one_id_seq', insta5.next_id()) > 0;
SELECT hint FROM "My %s Schema".snowflake_check() WHERE object = 'insta5.one.id' \gset
SELECT :'hint';
SELECT :'hint' \gexec
INSERT INTO insta5.one DEFAULT VALUES;
SELECT hint FROM "My %s Schema".snowflake_check();
SELECT "My %s Schema".snowflake_shard(id) FROM insta5.one;

-- A statement that calls the function of another role is for that role.
CREATE ROLE regress_hint_owner;
ALTER FUNCTION insta6.next_id() OWNER TO regress_hint_owner;
CREATE TABLE public.of_function (id bigint DEFAULT insta6.next_id());
SELECT hint FROM "My %s Schema".snowflake_check() WHERE object = 'insta6.next_id()';
SELECT hint_of('SELECT "My %s Schema".snowflake_' || s) FROM (VALUES ('create_shard(6, ''insta6'')'), ('attach(''of_function'', shard => 6)')) AS v(s);
ROLLBACK;
\pset format aligned
\pset tuples_only off
