-- Text in a shard runs with the rights of its owner: functions of snowflake_internal for snowflake-shard run and query.
CREATE ROLE regress_hostile;
CREATE ROLE regress_member;
CREATE ROLE regress_stranger;
GRANT regress_hostile TO regress_member;
CREATE SCHEMA regress_shard AUTHORIZATION regress_hostile;
CREATE TABLE regress_secret (word text);
INSERT INTO regress_secret VALUES ('secret');
SET ROLE regress_hostile;
CREATE TABLE regress_shard.users (id bigint PRIMARY KEY, name text, tags text[]);
INSERT INTO regress_shard.users VALUES (1, 'a', '{x,y}'), (2, NULL, NULL), (3, '', '{}');
RESET ROLE;

-- Several statements, each of which needs the one before. What they make is the owner's.
SELECT snowflake_internal.run_as_owner('regress_shard', $$
    ALTER TABLE users ADD place point;
    CREATE TABLE places (id bigint);
    INSERT INTO places SELECT id FROM users;
    SET work_mem = '1MB';
    CREATE INDEX ON places (id); $$);
SELECT relname, relowner::regrole FROM pg_class WHERE relnamespace = 'regress_shard'::regnamespace ORDER BY relname;
SHOW work_mem;
SELECT current_user = session_user AS is_caller_again, current_setting('search_path') LIKE '%regress_shard%' AS has_path;
SELECT * FROM snowflake_internal.columns_as_owner('regress_shard', 'SELECT id, name, tags AS "Tags", 1.5 FROM users');
SELECT * FROM snowflake_internal.rows_as_owner('regress_shard', 'SELECT id, name, tags FROM users ORDER BY id') AS r (a text, b text, c text);
SELECT count(*), max(n::integer) FROM snowflake_internal.rows_as_owner('regress_shard', 'SELECT generate_series(1, 2500)') AS r (n text);
SELECT * FROM snowflake_internal.rows_as_owner('regress_shard', 'TABLE users') AS r (a text);
SELECT * FROM snowflake_internal.rows_as_owner('regress_shard', 'SELECT id FROM users') AS r (a bigint);

-- The schema public belongs to pg_database_owner, which stands for the owner of the database.
SELECT nspowner::regrole FROM pg_namespace WHERE nspname = 'public';
SELECT owner::regrole = role::regrole AS is_owner_of_database
FROM (SELECT datdba FROM pg_database WHERE datname = current_database()) AS d (owner),
     snowflake_internal.rows_as_owner('public', 'SELECT quote_ident(current_user)') AS r (role text);

-- Texts that are refused.
SELECT snowflake_internal.columns_as_owner('regress_shard', 'SELECT 1; DROP TABLE users');
SELECT snowflake_internal.columns_as_owner('regress_shard', 'INSERT INTO users VALUES (4) RETURNING id');
SELECT snowflake_internal.columns_as_owner('regress_shard', 'WITH w AS (DELETE FROM users RETURNING id) TABLE w');
SELECT snowflake_internal.columns_as_owner('regress_shard', '');
SELECT snowflake_internal.run_as_owner('regress_shard', 'CREATE TABLE t (); COMMIT');
SELECT snowflake_internal.run_as_owner('regress_shard', 'COPY users FROM STDIN');
\set VERBOSITY sqlstate
SELECT snowflake_internal.run_as_owner('regress_shard', 'CREATE INDEX CONCURRENTLY ON users (name)');
\set VERBOSITY default
SELECT snowflake_internal.run_as_owner('regress_shard', 'SELECT * FROM nowhere');
SELECT snowflake_internal.run_as_owner(0::oid::regnamespace, 'SELECT 1');
SELECT current_user = session_user AS is_caller_again;

-- Code of the owner does not get the caller's rights: each line would be an attack.
SELECT current_user AS superuser \gset
CREATE TABLE ways (number integer GENERATED ALWAYS AS IDENTITY, way text);
INSERT INTO ways (way) VALUES
    ('RESET ROLE'), ('SET ROLE NONE'), ('RESET SESSION AUTHORIZATION'), ('SET SESSION AUTHORIZATION DEFAULT'),
    (format('SET SESSION AUTHORIZATION %I', :'superuser')), (format('SET ROLE %I', :'superuser')),
    ($$SELECT set_config('role', 'none', false)$$),
    (format('SELECT set_config(''session_authorization'', %L, false)', :'superuser')),
    ($$UPDATE pg_settings SET setting = 'none' WHERE name = 'role'$$),
    ($$COPY public.regress_secret TO PROGRAM 'cat'$$), ($$COPY public.regress_secret TO '/tmp/regress_secret'$$),
    ('TABLE public.regress_secret'), ('ALTER ROLE regress_hostile SUPERUSER'), ('SELECT pg_read_file(''PG_VERSION'')'),
    ('CREATE TEMP TABLE users (id bigint)'), ('CREATE TEMP VIEW v AS SELECT 1'), ('DECLARE c CURSOR WITH HOLD FOR SELECT 1'),
    ('PREPARE p AS SELECT 1'), ('DEALLOCATE ALL'), ('LISTEN channel'), ('UNLISTEN *'), ('DISCARD PLANS'),
    ('CLOSE ALL'), ('SET session_replication_role = replica'), ('SET CONSTRAINTS ALL DEFERRED; INSERT INTO regress_shard.child VALUES (1, 9)');
-- SQLSTATE 42501 is insufficient_privilege.
CREATE FUNCTION public.try(way text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE way;
    RETURN 'done as ' || current_user;
EXCEPTION WHEN OTHERS THEN
    RETURN SQLSTATE;
END $$;
CREATE TABLE regress_shard.child (id bigint, user_id bigint REFERENCES regress_shard.users DEFERRABLE INITIALLY DEFERRED);
ALTER TABLE regress_shard.child OWNER TO regress_hostile;
GRANT SELECT ON ways TO regress_hostile;
SET ROLE regress_hostile;
CREATE VIEW regress_shard.photos AS SELECT number, public.try(way) AS result FROM public.ways;
RESET ROLE;
SELECT * FROM snowflake_internal.rows_as_owner('regress_shard', 'SELECT * FROM photos ORDER BY number') AS r (number text, result text);
SELECT rolsuper FROM pg_roles WHERE rolname = 'regress_hostile';
-- Nor by what it leaves behind: a cursor of a known name, a trigger that waits for COMMIT.
BEGIN;
SELECT snowflake_internal.run_as_owner('regress_shard', $$ DO 'BEGIN EXECUTE ''DECLARE snowflake_rows CURSOR FOR SELECT current_user''; END' $$);
SELECT * FROM snowflake_internal.rows_as_owner('regress_shard', 'SELECT 1') AS r (a text);
ROLLBACK;
BEGIN;
SELECT snowflake_internal.run_as_owner('regress_shard', 'INSERT INTO child VALUES (1, 9)');
ROLLBACK;
BEGIN;
SELECT snowflake_internal.run_as_owner('regress_shard', 'INSERT INTO child VALUES (1, 1)');
COMMIT;

-- Roles: a member of the owner may, others not; no rights of the caller are needed for the objects.
SET ROLE regress_member;
SELECT * FROM snowflake_internal.rows_as_owner('regress_shard', 'SELECT current_user, count(*) FROM users') AS r (a text, b text);
SELECT snowflake_internal.run_as_owner('regress_shard', 'TABLE public.regress_secret');
SET ROLE regress_stranger;
SELECT snowflake_internal.run_as_owner('regress_shard', 'SELECT 1');
SELECT * FROM snowflake_internal.rows_as_owner('regress_shard', 'SELECT 1') AS r (a text);
RESET ROLE;

-- A superuser gets all rows, or an error: row security that is forced on the owner, and that of another owner's table.
ALTER TABLE regress_shard.users ENABLE ROW LEVEL SECURITY;
ALTER TABLE regress_shard.users FORCE ROW LEVEL SECURITY;
CREATE TABLE regress_shard.other (id bigint);
ALTER TABLE regress_shard.other ENABLE ROW LEVEL SECURITY;
GRANT SELECT ON regress_shard.other TO regress_hostile;
SELECT * FROM snowflake_internal.rows_as_owner('regress_shard', 'SELECT count(*) FROM users') AS r (a text);
SELECT * FROM snowflake_internal.rows_as_owner('regress_shard', 'SELECT count(*) FROM other') AS r (a text);
SET ROLE regress_member;
SELECT * FROM snowflake_internal.rows_as_owner('regress_shard', 'SELECT count(*) FROM other') AS r (a text);
RESET ROLE;
-- The owner of a table reads with names of pg_catalog alone.
SELECT 'regress_shard.users'::regclass::oid AS users \gset
SELECT * FROM snowflake_internal.rows_as_table_owner(:users, 'SELECT current_user, count(*) FROM regress_shard.users') AS r (a text, b text);
SELECT * FROM snowflake_internal.rows_as_table_owner(:users, 'TABLE users') AS r (a text);
SELECT * FROM snowflake_internal.rows_as_table_owner(0, 'SELECT 1') AS r (a text);
SET ROLE regress_stranger;
SELECT * FROM snowflake_internal.rows_as_table_owner(:users, 'TABLE regress_shard.users') AS r (a text);
RESET ROLE;

-- Statements that PostgreSQL itself runs as the owner of the table.
SELECT s, snowflake_internal.is_maintenance(s) FROM unnest(ARRAY[
    'VACUUM users', 'VACUUM (FULL, ANALYZE) users', 'ANALYZE', 'REINDEX TABLE CONCURRENTLY users', 'DROP INDEX CONCURRENTLY i',
    'CREATE INDEX CONCURRENTLY ON users (name)', 'CREATE INDEX CONCURRENTLY i ON users (lower(name), id DESC) WHERE id > 5 AND name IS NOT NULL',
    $$CREATE INDEX CONCURRENTLY ON users (name) WHERE name = 'a'::text$$, $$CREATE INDEX CONCURRENTLY ON users (name) WHERE name <> pg_catalog.varchar 'a'$$,
    $$CREATE INDEX CONCURRENTLY ON users (name) WHERE name = 'a'$$, $$CREATE INDEX CONCURRENTLY ON users (name) WHERE name IN ('a', 'b'::text)$$,
    $$CREATE INDEX CONCURRENTLY ON users (name) WHERE name = 'a'::handle$$, $$CREATE INDEX CONCURRENTLY ON users ((name || 'a'))$$,
    $$CREATE INDEX CONCURRENTLY ON users (name) WHERE name = ANY ('{a}'::regress_shard.evil[])$$,
    'CREATE INDEX ON users (name)', 'DROP INDEX i', 'DROP TABLE users', 'VACUUM users; DROP TABLE users', 'CALL p()', 'SELECT f()',
    'ALTER TABLE users DETACH PARTITION p CONCURRENTLY', '']) AS s;
SELECT snowflake_internal.is_maintenance('CREATE INDEX CONCURRENTLY ON');

-- Scripts of comments alone, and such as end a transaction.
SELECT s, snowflake_internal.has_statements(s), snowflake_internal.ends_transaction(s) FROM unnest(ARRAY[
    '', ';;', '-- BEGIN', '/* COMMIT; */ ;', 'SELECT 1', 'VACUUM; COMMIT', 'START TRANSACTION', 'SAVEPOINT s', $$DO 'BEGIN COMMIT; END'$$,
    $$SELECT 'COMMIT;'$$]) AS s;

-- A dump: an expression that is evaluated while an object is made calls no function of another role, and no function with
-- effects. Other statements keep the rights of the caller, who refers here to a table of his own. A part of it changes nothing.
SET ROLE regress_hostile;
CREATE FUNCTION regress_shard.f(integer) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1; END';
CREATE DOMAIN regress_shard.checked AS text CHECK (regress_shard.f(1) = 1);
CREATE DOMAIN regress_shard.queried AS text CHECK (set_config('application_name', 'regress', false) = 'regress');
RESET ROLE;
ALTER TABLE regress_secret ADD PRIMARY KEY (word);
CREATE ROLE regress_super SUPERUSER;
SET ROLE regress_super;
SELECT snowflake_internal.run_guarded($$ SET search_path = ''; CREATE TABLE regress_shard.made (a integer DEFAULT regress_shard.f(1) CHECK (regress_shard.f(a) = 1),
    b integer GENERATED ALWAYS AS (length(word)) STORED, word text REFERENCES public.regress_secret, c regress_shard.checked DEFAULT 'x');
    CREATE INDEX ON regress_shard.made (regress_shard.f(a)); DROP TABLE regress_shard.made $$);
SELECT snowflake_internal.run_guarded('CREATE TABLE regress_shard.made (a regress_shard.checked[] DEFAULT ''{1}'')');
-- The parser reads such a literal, too.
SELECT * FROM snowflake_internal.rows_as_table_owner(:users, $$ SELECT count('{1}'::regress_shard.checked[]) FROM regress_shard.users $$) AS r (a text);
SELECT * FROM snowflake_internal.rows_as_table_owner(:users, $$ SELECT count('{1}'::regress_shard.queried[]) FROM regress_shard.users $$) AS r (a text);
SELECT snowflake_internal.run_guarded('CREATE TABLE regress_shard.made (); CREATE TABLE regress_shard.other_made (a regress_shard.queried[] DEFAULT ''{1}'')');
SELECT to_regclass('regress_shard.made') IS NULL AS is_rolled_back;
SELECT snowflake_internal.run_as_role('regress_hostile', 'CREATE TABLE regress_shard.as_owner (a regress_shard.checked[] DEFAULT ''{1}'', b regress_shard.queried[] DEFAULT ''{1}'')');
SELECT relowner::regrole FROM pg_class WHERE oid = 'regress_shard.as_owner'::regclass;
-- Event triggers are of superusers.
CREATE FUNCTION public.note() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE '% at % ', tg_tag, clock_timestamp() IS NOT NULL; END $$;
CREATE EVENT TRIGGER regress_note ON ddl_command_end EXECUTE FUNCTION public.note();
SELECT snowflake_internal.run_guarded('CREATE TABLE regress_shard.noted ()');
SELECT snowflake_internal.run_guarded('CREATE TABLE regress_shard.noted_too (); CREATE TABLE regress_shard.made (a regress_shard.queried[] DEFAULT ''{1}'')');
DROP EVENT TRIGGER regress_note;
DROP FUNCTION public.note();
DROP OWNED BY regress_super;
RESET ROLE;
SET ROLE regress_stranger;
SELECT snowflake_internal.run_as_role('regress_hostile', 'SELECT 1');
SELECT snowflake_internal.run_as_role('regress_nobody', 'SELECT 1');
RESET ROLE;

-- Its text is read as a dump is written, whatever the session has set, and its settings end with it. From PostgreSQL 19 on strings are
-- always so.
DO $$ BEGIN
    SET escape_string_warning = off;
    SET standard_conforming_strings = off;
EXCEPTION WHEN OTHERS THEN
    NULL;
END $$;
SELECT current_setting('standard_conforming_strings') AS conforming \gset
SELECT snowflake_internal.run_guarded($$ SET standard_conforming_strings = on; SET search_path = ''; SET application_name = 'guarded';
    CREATE TABLE public.regress_escaped (a text DEFAULT 'one\', b text DEFAULT '; SET application_name = regress_forged; --') $$);
SELECT current_setting('standard_conforming_strings') = :'conforming' AS conforms, current_setting('search_path'), current_setting('application_name') LIKE 'pg_regress%' AS is_kept;
SET standard_conforming_strings = on;
SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'public.regress_escaped'::regclass ORDER BY adnum;

SET client_min_messages = warning;
DROP TABLE public.regress_escaped;
DROP SCHEMA regress_shard CASCADE;
DROP FUNCTION public.try;
DROP TABLE ways, regress_secret;
DROP ROLE regress_hostile, regress_member, regress_stranger, regress_super;
