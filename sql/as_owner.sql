-- What works in the session of the caller with the rights of an owner, in a security-restricted operation; and texts that are read.
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
DROP TABLE regress_secret;
DROP ROLE regress_hostile, regress_member, regress_stranger, regress_super;
