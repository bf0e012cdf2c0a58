-- SQL of a shard runs in a session of its owner, a process of its own: functions of snowflake_internal for snowflake-shard run and query.
-- Before PostgreSQL 17 the owner needs LOGIN: test/t/053_cli_rights.pl.
CREATE ROLE regress_hostile LOGIN;
CREATE ROLE regress_super LOGIN SUPERUSER;
CREATE ROLE regress_member;
CREATE ROLE regress_stranger;
GRANT regress_hostile TO regress_member;
CREATE SCHEMA regress_shard AUTHORIZATION regress_hostile;
CREATE SCHEMA regress_next AUTHORIZATION regress_hostile;
CREATE SCHEMA regress_super AUTHORIZATION regress_super;
CREATE TABLE regress_secret (word text);
INSERT INTO regress_secret VALUES ('secret');
SET ROLE regress_hostile;
CREATE TABLE regress_shard.users (id bigint PRIMARY KEY, name text, tags text[]);
INSERT INTO regress_shard.users VALUES (1, 'a', '{x,y}'), (2, NULL, NULL), (3, '', '{}');
RESET ROLE;
-- What the session of a schema's owner answers to a query of one column.
CREATE FUNCTION public.ask(schema regnamespace, query text, beginning text DEFAULT 'BEGIN READ ONLY') RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    PERFORM snowflake_internal.session_begin(schema, beginning);
    PERFORM snowflake_internal.session_query(query);
    RETURN QUERY SELECT r.a FROM snowflake_internal.session_fetch(1000000) AS r (a text);
END $$;

-- Several statements, each of which needs the one before. What they make is the owner's.
BEGIN;
SELECT snowflake_internal.session_begin('regress_shard', 'BEGIN');
SELECT snowflake_internal.session_script($$
    ALTER TABLE users ADD place point;
    CREATE TABLE places (id bigint);
    INSERT INTO places SELECT id FROM users;
    SET work_mem = '1MB';
    DO 'BEGIN RAISE NOTICE ''% as % of %'', 1, current_user, session_user; END';
    CREATE INDEX ON places (id); $$);
SELECT snowflake_internal.session_run('COMMIT');
COMMIT;
SELECT relname, relowner::regrole FROM pg_class WHERE relnamespace = 'regress_shard'::regnamespace ORDER BY relname;
SHOW work_mem;

-- A query: its columns, then its rows in batches.
BEGIN;
SELECT snowflake_internal.session_begin('regress_shard', 'BEGIN READ ONLY');
SELECT * FROM snowflake_internal.session_query('SELECT id, name, tags AS "Tags", 1.5 FROM users ORDER BY id');
SELECT * FROM snowflake_internal.session_fetch(2) AS r (a text, b text, c text, d text);
SELECT * FROM snowflake_internal.session_fetch(2) AS r (a text, b text, c text, d text);
SELECT * FROM snowflake_internal.session_fetch(2) AS r (a text, b text, c text, d text);
ROLLBACK;
SELECT count(*), max(a::integer) FROM ask('regress_shard', 'SELECT generate_series(1, 2500)') AS a;
SELECT length(a) FROM ask('regress_shard', 'SELECT repeat(''x'', 1000000)') AS a;
BEGIN;
SELECT snowflake_internal.session_begin('regress_shard', 'BEGIN READ ONLY');
SELECT * FROM snowflake_internal.session_query('SELECT count(*) FROM users WHERE id > $1 AND id <= $2', 1, 2);
SELECT * FROM snowflake_internal.session_fetch(2) AS r (a text);
SAVEPOINT s;
SELECT * FROM snowflake_internal.session_query('SELECT 1 WHERE $1 < $2 LIMIT 1', 1, 2);
ROLLBACK TO s;
-- The transaction of the session is aborted, and that of the caller is not.
SELECT snowflake_internal.session_query('SELECT 1');
ROLLBACK TO s;
SELECT snowflake_internal.session_script('SELECT 1');
ROLLBACK TO s;
SELECT snowflake_internal.session_run('ROLLBACK; BEGIN READ ONLY');
SELECT * FROM snowflake_internal.session_query('SELECT 1, 2');
SELECT * FROM snowflake_internal.session_fetch(2) AS r (a text);
-- The error was of the caller while an answer was under way: that session has ended.
ROLLBACK TO s;
SELECT snowflake_internal.session_run('COMMIT');
ROLLBACK;
BEGIN;
SELECT snowflake_internal.session_begin('regress_shard', 'BEGIN READ ONLY');
SELECT * FROM snowflake_internal.session_query('SELECT 1');
SELECT * FROM snowflake_internal.session_fetch(2) AS r (a bigint);
ROLLBACK;

-- The schema public belongs to pg_database_owner, which stands for the owner of the database.
SELECT nspowner::regrole FROM pg_namespace WHERE nspname = 'public';
SELECT owner::regrole = role::regrole AS is_owner_of_database
FROM (SELECT datdba FROM pg_database WHERE datname = current_database()) AS d (owner), ask('public', 'SELECT quote_ident(session_user)') AS a (role);

-- Texts that are refused.
SELECT ask('regress_shard', 'SELECT 1; DROP TABLE users');
SELECT ask('regress_shard', 'INSERT INTO users VALUES (4) RETURNING id');
SELECT ask('regress_shard', 'WITH w AS (DELETE FROM users RETURNING id) TABLE w');
SELECT ask('regress_shard', '');
SELECT ask('regress_shard', 'TABLE nowhere');
BEGIN;
SELECT snowflake_internal.session_begin('regress_shard', 'BEGIN');
SAVEPOINT s;
SELECT snowflake_internal.session_script('CREATE TABLE t (); COMMIT');
ROLLBACK TO s;
SELECT snowflake_internal.session_run('ROLLBACK; BEGIN');
SELECT snowflake_internal.session_script('COPY users FROM STDIN');
ROLLBACK TO s;
SELECT snowflake_internal.session_run('ROLLBACK; BEGIN');
SELECT snowflake_internal.session_script('COPY users TO STDOUT');
ROLLBACK TO s;
SELECT snowflake_internal.session_run('ROLLBACK; BEGIN');
SELECT snowflake_internal.session_script('CREATE INDEX CONCURRENTLY ON users (name)');
ROLLBACK TO s;
SELECT snowflake_internal.session_run('ROLLBACK; BEGIN');
SELECT snowflake_internal.session_script('SAVEPOINT s');
ROLLBACK TO s;
SELECT snowflake_internal.session_run('ROLLBACK; BEGIN');
SELECT snowflake_internal.session_script(E'SELECT 1;\nSELECT * FROM nowhere');
ROLLBACK TO s;
SELECT snowflake_internal.session_run('ROLLBACK; BEGIN');
SELECT snowflake_internal.session_script('SET client_encoding = latin1');
ROLLBACK TO s;
SELECT snowflake_internal.session_run('ROLLBACK; BEGIN');
SELECT snowflake_internal.session_script($$ DO 'BEGIN COMMIT; END' $$);
ROLLBACK;
SELECT snowflake_internal.session_begin(0::oid::regnamespace, '');
SELECT * FROM snowflake_internal.session_problem(0::oid::regnamespace);

-- One statement in no transaction, which may end and begin transactions itself.
SELECT snowflake_internal.session_begin('regress_shard', '');
CALL snowflake_internal.session_alone('CREATE INDEX CONCURRENTLY users_name ON users (name)');
CALL snowflake_internal.session_alone('VACUUM (ANALYZE) users');
CALL snowflake_internal.session_alone($$ DO 'BEGIN DROP INDEX users_name; COMMIT; CREATE TABLE made (); END' $$);
SELECT to_regclass('regress_shard.users_name'), to_regclass('regress_shard.made');
CALL snowflake_internal.session_alone('SELECT 1; SELECT 2');
CALL snowflake_internal.session_alone('-- nothing');
CALL snowflake_internal.session_alone(NULL);
CALL snowflake_internal.session_alone('COPY users TO STDOUT');
CALL snowflake_internal.session_alone('BEGIN');
CALL snowflake_internal.session_alone('SELECT 1');
BEGIN;
SELECT snowflake_internal.session_begin('regress_shard', '');
CALL snowflake_internal.session_alone('SELECT 1');
ROLLBACK;

-- Code of the owner is the owner, whatever it tries: it was never anybody else.
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
    ('PREPARE p AS SELECT 1'), ('SELECT pg_advisory_lock(77)'), ('SET work_mem = ''1MB'''), ('LISTEN channel'),
    ('DISCARD ALL'), ('SET session_replication_role = replica'),
    ('SET CONSTRAINTS ALL DEFERRED; INSERT INTO regress_shard.child VALUES (1, 1)'),
    ('SELECT snowflake_internal.session_run(''SELECT 1'')');
GRANT SELECT ON ways TO regress_hostile;
-- SQLSTATE 42501 is insufficient_privilege.
CREATE FUNCTION public.try(way text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE way;
    RETURN format('done as %s of session %s', current_user, session_user);
EXCEPTION WHEN OTHERS THEN
    RETURN SQLSTATE;
END $$;
SET ROLE regress_hostile;
CREATE TABLE regress_shard.child (id bigint, user_id bigint REFERENCES regress_shard.users DEFERRABLE INITIALLY DEFERRED);
CREATE VIEW regress_shard.photos AS SELECT format('%s %s: %s', number, substr(replace(way, quote_ident(:'superuser'), 'SUPERUSER'), 1, 28), public.try(way)) FROM public.ways ORDER BY number;
RESET ROLE;
BEGIN;
SELECT a FROM ask('regress_shard', 'TABLE photos', 'BEGIN') AS a;
SELECT snowflake_internal.session_run('COMMIT');
COMMIT;
SELECT rolsuper FROM pg_roles WHERE rolname = 'regress_hostile';
-- Nothing of it is in the caller's session, and nothing in the next shard of the owner, whose session is that process.
SELECT current_user = session_user AS is_caller, current_setting('work_mem') = '1MB' AS has_setting, (SELECT count(*) FROM pg_cursors WHERE name = 'c') AS cursors,
       (SELECT count(*) FROM pg_prepared_statements) AS prepared, to_regclass('pg_temp.users') AS temporary,
       (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 77 AND pid = pg_backend_pid()) AS locks;
SELECT pid AS process FROM pg_stat_activity WHERE backend_type = 'snowflake session' AND usename = 'regress_hostile' \gset
BEGIN;
SELECT a.* FROM ask('regress_next', format($$ SELECT concat_ws(' ', pg_backend_pid() = %s, current_user, session_user, current_setting('work_mem') = '1MB',
    current_setting('search_path'), regexp_replace(current_setting('application_name'), '\d+', 'N'), (SELECT count(*) FROM pg_cursors WHERE name = 'c'),
    (SELECT count(*) FROM pg_prepared_statements), COALESCE(to_regclass('pg_temp.users')::text, 'no'),
    (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 77)) $$, :process)) AS a;
ROLLBACK;
-- A cursor of the name of the query's, and a trigger that waits for COMMIT.
BEGIN;
SELECT snowflake_internal.session_begin('regress_shard', 'BEGIN');
SELECT snowflake_internal.session_script($$ DO 'BEGIN EXECUTE ''DECLARE snowflake_rows CURSOR FOR SELECT current_user''; END' $$);
SELECT snowflake_internal.session_query('SELECT 1');
ROLLBACK;
BEGIN;
SELECT snowflake_internal.session_begin('regress_shard', 'BEGIN');
SELECT snowflake_internal.session_script('INSERT INTO child VALUES (1, 9)');
SELECT snowflake_internal.session_run('COMMIT');
ROLLBACK;

-- The end of the caller's transaction is the end of that of the session, whichever it is.
BEGIN;
SELECT snowflake_internal.session_begin('regress_shard', 'BEGIN');
SELECT snowflake_internal.session_script('DROP TABLE users CASCADE');
COMMIT;
SELECT snowflake_internal.session_run('COMMIT');
SELECT to_regclass('regress_shard.users') IS NOT NULL AS is_there;
-- In a function of a function, and in a subtransaction that fails.
DO $$
BEGIN
    PERFORM ask('regress_shard', 'SELECT 1/0');
EXCEPTION WHEN division_by_zero THEN
    RAISE NOTICE '% %', SQLSTATE, ask('regress_next', 'SELECT current_user');
END $$;
-- A caller that has written could make the session wait for it.
BEGIN;
CREATE TABLE public.regress_written ();
SELECT snowflake_internal.session_begin('regress_shard', '');
ROLLBACK;
SELECT snowflake_internal.session_run('SELECT 1');

-- Roles: a member of the owner may, others not; no rights of the caller are needed for the objects.
SET ROLE regress_member;
SELECT ask('regress_shard', $$ SELECT concat_ws(' ', current_user, session_user, count(*)) FROM users $$);
SELECT ask('regress_shard', 'TABLE public.regress_secret');
SET ROLE regress_stranger;
SELECT ask('regress_shard', 'SELECT 1');
SELECT * FROM snowflake_internal.session_problem('regress_shard');
RESET ROLE;
-- Nor does a session of the caller's serve code of another role that the caller's process runs, or an owner who reaches it.
SELECT snowflake_internal.session_begin('regress_super', '');
CREATE FUNCTION public.by_definer() RETURNS void LANGUAGE sql SECURITY DEFINER AS $$ SELECT snowflake_internal.session_script('SELECT 1') $$;
ALTER FUNCTION public.by_definer() OWNER TO regress_hostile;
SELECT public.by_definer();
SELECT snowflake_internal.session_script('SELECT 1');
-- As in an index, whose functions are called in a restricted operation.
CREATE FUNCTION regress_shard.begun() RETURNS integer IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    PERFORM snowflake_internal.session_begin('regress_shard', '');
    RETURN 1;
END $$;
CREATE INDEX ON regress_shard.users ((regress_shard.begun()));
-- In a worker of a parallel query.
CREATE FUNCTION public.in_parallel() RETURNS void LANGUAGE plpgsql PARALLEL SAFE AS $$ BEGIN PERFORM snowflake_internal.session_begin('regress_super', ''); END $$;
SELECT count(set_config(name, 'regress', false)) FROM pg_settings WHERE name IN ('debug_parallel_query', 'force_parallel_mode');
SELECT public.in_parallel();
SELECT count(set_config(name, 'off', false)) FROM pg_settings WHERE name IN ('debug_parallel_query', 'force_parallel_mode');

-- What the owner lacks.
BEGIN;
REVOKE CONNECT ON DATABASE contrib_regression FROM PUBLIC;
SELECT * FROM snowflake_internal.session_problem('regress_shard');
ROLLBACK;
SELECT * FROM snowflake_internal.session_problem('regress_shard');

-- A query gets all rows, or an error: row security that is forced on the owner, and that of another owner's table.
ALTER TABLE regress_shard.users ENABLE ROW LEVEL SECURITY;
SELECT ask('regress_shard', 'SELECT count(*) FROM users');
ALTER TABLE regress_shard.users FORCE ROW LEVEL SECURITY;
CREATE TABLE regress_shard.other (id bigint);
ALTER TABLE regress_shard.other ENABLE ROW LEVEL SECURITY;
GRANT SELECT ON regress_shard.other TO regress_hostile;
SELECT ask('regress_shard', 'SELECT count(*) FROM users');
SELECT ask('regress_shard', 'SELECT count(*) FROM other');
-- Settings of the role hold, but for those that a change and its record rely on.
ALTER ROLE regress_hostile SET synchronous_commit = off;
ALTER ROLE regress_hostile SET default_transaction_read_only = on;
ALTER ROLE regress_hostile SET work_mem = '3MB';
SELECT snowflake_internal.session_begin('regress_super', '');
SELECT ask('regress_shard', $$ SELECT concat_ws(' ', current_setting('synchronous_commit'), current_setting('transaction_read_only'), current_setting('work_mem')) $$, 'BEGIN');
-- The type of a column is that of the domain's values. Text in another encoding than that of the database is an error, or right.
CREATE DOMAIN public.regress_name AS text;
BEGIN;
SELECT snowflake_internal.session_begin('regress_super', 'BEGIN');
SELECT name, type::regtype FROM snowflake_internal.session_query($$ SELECT 'a'::public.regress_name AS a, '{}'::int[] AS "B" $$);
SELECT * FROM snowflake_internal.session_fetch(1) AS r (a text, b text);
ROLLBACK;
SELECT ask('regress_super', $$ SELECT set_config('client_encoding', 'latin1', false) || chr(228) $$);
SELECT ask('regress_super', $$ SELECT set_config('client_encoding', 'latin1', false) || chr(195) || chr(169) $$);

-- Definitions: schemas of the role are made and renamed in its transaction with the rights of the caller, and all else with those of the role.
SET client_min_messages = warning;
CREATE ROLE regress_maker;
GRANT regress_hostile TO regress_maker;
GRANT CREATE ON DATABASE contrib_regression TO regress_maker;
ALTER ROLE regress_hostile RESET ALL;
-- An event trigger runs with the rights of the role, with whatever search_path that role has set.
CREATE TABLE public.events (number integer GENERATED ALWAYS AS IDENTITY, event text);
GRANT INSERT ON events TO PUBLIC;
CREATE FUNCTION public.note() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO public.events (event) VALUES (format('%s %s as %s of session %s, path %s', tg_event, tg_tag, current_user, session_user, current_setting('search_path')));
    IF tg_event = 'ddl_command_end' THEN
        INSERT INTO public.events (event) SELECT concat_ws(' ', 'made:', object_type, object_identity) FROM pg_event_trigger_ddl_commands();
    END IF;
END $$;
CREATE EVENT TRIGGER regress_start ON ddl_command_start EXECUTE FUNCTION public.note();
CREATE EVENT TRIGGER regress_end ON ddl_command_end EXECUTE FUNCTION public.note();
RESET client_min_messages;
SET ROLE regress_maker;
BEGIN;
SELECT snowflake_internal.session_of_role('regress_hostile', 'BEGIN');
SELECT snowflake_internal.session_create_schema('Regress New');
SELECT snowflake_internal.session_script($$ CREATE TABLE "Regress New".photos (id bigint); SET search_path = "Regress New" $$);
SELECT snowflake_internal.session_rename_schema('Regress New', 'regress_made');
SELECT snowflake_internal.session_script($$ SET ROLE NONE; RESET SESSION AUTHORIZATION;
    SET search_path = regress_made; CREATE TABLE photos2 AS SELECT current_user, session_user $$);
SELECT snowflake_internal.session_run('COMMIT');
COMMIT;
RESET ROLE;
SELECT nspowner::regrole, relname, relowner::regrole FROM pg_namespace AS n JOIN pg_class ON relnamespace = n.oid WHERE nspname = 'regress_made' ORDER BY relname;
TABLE regress_made.photos2;
SELECT event FROM events ORDER BY number;
DROP EVENT TRIGGER regress_start;
DROP EVENT TRIGGER regress_end;
-- It is rolled back with the rest; an error leaves the role with its own rights.
BEGIN;
SELECT snowflake_internal.session_of_role('regress_hostile', 'BEGIN');
SELECT snowflake_internal.session_rename_schema('regress_made', 'regress_away');
SELECT snowflake_internal.session_create_schema('regress_made');
SELECT snowflake_internal.session_run('SAVEPOINT made');
SAVEPOINT s;
SELECT snowflake_internal.session_create_schema('regress_away');
ROLLBACK TO s;
SELECT snowflake_internal.session_run('ROLLBACK TO made');
SELECT snowflake_internal.session_create_schema('pg_regress');
ROLLBACK TO s;
SELECT snowflake_internal.session_run('ROLLBACK TO made');
SELECT snowflake_internal.session_query($$ SELECT concat_ws(' ', current_user, session_user, to_regclass('regress_away.photos')) $$);
SELECT * FROM snowflake_internal.session_fetch(1) AS r (a text);
SELECT snowflake_internal.session_script('CREATE SCHEMA regress_not');
ROLLBACK;
SELECT nspname FROM pg_namespace WHERE nspname IN ('regress_made', 'regress_away', 'regress_not');
-- In no transaction of the session, and in one that writes nothing.
SELECT snowflake_internal.session_of_role('regress_hostile', '');
SELECT snowflake_internal.session_create_schema('regress_away');
SELECT snowflake_internal.session_script('DROP SCHEMA regress_away');
SELECT snowflake_internal.session_run('SET default_transaction_read_only = on');
SELECT snowflake_internal.session_create_schema('regress_away');
-- A schema of another role stays that of the other role, also for a superuser.
SELECT snowflake_internal.session_rename_schema('regress_super', 'regress_away');
SELECT snowflake_internal.session_run('SET default_transaction_read_only = off');
SELECT snowflake_internal.session_rename_schema('regress_super', 'regress_away');
SELECT snowflake_internal.session_rename_schema('regress_nowhere', 'regress_away');
-- A caller that may not create schemas; one that may not become the role; one that has not begun the session.
SET ROLE regress_member;
SELECT snowflake_internal.session_create_schema('regress_away');
SELECT snowflake_internal.session_of_role('regress_hostile', '');
SELECT snowflake_internal.session_create_schema('regress_away');
SELECT snowflake_internal.session_rename_schema('regress_made', 'regress_away');
SET ROLE regress_maker;
SELECT snowflake_internal.session_create_schema('regress_away');
SET ROLE regress_stranger;
SELECT snowflake_internal.session_of_role('regress_hostile', '');
SELECT snowflake_internal.session_of_role('regress_nobody', '');
RESET ROLE;
-- For pg_database_owner the owner of the database.
BEGIN;
SELECT snowflake_internal.session_of_role('pg_database_owner', 'BEGIN');
SELECT snowflake_internal.session_query($$ SELECT session_user = pg_get_userbyid(datdba) FROM pg_database WHERE datname = current_database() $$);
SELECT * FROM snowflake_internal.session_fetch(1) AS r (a text);
ROLLBACK;

SET client_min_messages = warning;
DROP SCHEMA regress_made CASCADE;
DROP FUNCTION public.note;
DROP TABLE events;
REVOKE CREATE ON DATABASE contrib_regression FROM regress_maker;
DROP ROLE regress_maker;
DROP DOMAIN public.regress_name;
DROP SCHEMA regress_shard, regress_next, regress_super CASCADE;
DROP FUNCTION public.try, public.ask, public.by_definer, public.in_parallel;
DROP TABLE ways, regress_secret;
DROP ROLE regress_hostile, regress_super, regress_member, regress_stranger;
