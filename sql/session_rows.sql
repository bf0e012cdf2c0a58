-- The rows of a table: by a query in a session of its owner, and as they are stored.
-- Before PostgreSQL 17 the owner needs LOGIN.
SET client_min_messages = warning;
CREATE ROLE regress_super LOGIN SUPERUSER;
CREATE ROLE regress_ann LOGIN;
CREATE ROLE regress_eve LOGIN;
CREATE ROLE regress_member;
GRANT regress_ann TO regress_member;
SET ROLE regress_super;
CREATE SCHEMA regress_of_ann AUTHORIZATION regress_ann;
CREATE SCHEMA regress_shared AUTHORIZATION regress_eve;
GRANT USAGE ON SCHEMA regress_of_ann, regress_shared TO PUBLIC;
CREATE TABLE regress_shared.one (id bigint, at timestamptz);
CREATE TABLE regress_of_ann.two (id bigint);
CREATE TABLE regress_of_ann.evil (id bigint);
INSERT INTO regress_shared.one VALUES (1, '2011-08-24 01:02+00');
ALTER TABLE regress_shared.one OWNER TO regress_ann;
ALTER TABLE regress_of_ann.two OWNER TO regress_ann;
ALTER TABLE regress_of_ann.evil OWNER TO regress_eve;
SELECT 'regress_shared.one'::regclass::oid AS one \gset

-- As the owner, with names of pg_catalog alone, and with the settings of the caller.
SELECT * FROM snowflake_internal.session_rows(:one, 'SELECT current_user, session_user, count(*) FROM regress_shared.one') AS r (a text, b text, c text);
SET DateStyle = German; SET TimeZone = 'Asia/Tokyo'; SET application_name = 'regress_caller';
SELECT * FROM snowflake_internal.session_rows(:one, 'SELECT at, current_setting(''transaction_read_only''), regexp_replace(current_setting(''application_name''), ''[0-9]+'', ''N'') FROM regress_shared.one') AS r (a text, b text, c text);
RESET DateStyle; RESET TimeZone;
SELECT * FROM snowflake_internal.session_rows(:one, 'TABLE one') AS r (a text);
SELECT * FROM snowflake_internal.session_rows(0, 'SELECT 1') AS r (a text);
SELECT * FROM snowflake_internal.session_rows(:one, 'SELECT 1 FROM regress_shared.one; SELECT 2') AS r (a text);
SELECT * FROM snowflake_internal.session_rows(:one, 'DELETE FROM regress_shared.one RETURNING id') AS r (a text);
SELECT * FROM snowflake_internal.session_rows(:one, 'SELECT id FROM regress_shared.one') AS r (a text, b text);
-- No table of another owner. Catalogues may be read, too.
SELECT * FROM snowflake_internal.session_rows(:one, 'SELECT 1 FROM regress_shared.one AS o WHERE NOT EXISTS (SELECT FROM regress_of_ann.two AS t WHERE t.id = o.id)') AS r (a text);
SELECT * FROM snowflake_internal.session_rows(:one, 'SELECT 1 FROM regress_of_ann.two') AS r (a text);
SELECT * FROM snowflake_internal.session_rows(:one, 'SELECT 1 FROM regress_shared.one AS o WHERE EXISTS (SELECT FROM regress_of_ann.evil AS t WHERE t.id = o.id)') AS r (a text);
SELECT * FROM snowflake_internal.session_rows(:one, 'WITH e AS MATERIALIZED (TABLE regress_of_ann.evil) SELECT 1 FROM regress_shared.one, e') AS r (a text);
SELECT * FROM snowflake_internal.session_rows(:one, 'SELECT count(*) FROM ONLY regress_shared.one, pg_stat_activity WHERE pid = pg_backend_pid()') AS r (a text);
-- Policies that are forced on the owner are an error.
ALTER TABLE regress_shared.one ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
SELECT * FROM snowflake_internal.session_rows(:one, 'SELECT count(*) FROM ONLY regress_shared.one') AS r (a text);
ALTER TABLE regress_shared.one NO FORCE ROW LEVEL SECURITY;
SELECT * FROM snowflake_internal.session_rows(:one, 'SELECT count(*) FROM ONLY regress_shared.one') AS r (a text);
ALTER TABLE regress_shared.one DISABLE ROW LEVEL SECURITY;
-- Code of the owner reads no more rows than the owner does, whoever asks: a function of a third role, whose rows are hidden from that role.
CREATE ROLE regress_bob LOGIN;
CREATE SCHEMA regress_of_bob AUTHORIZATION regress_bob;
GRANT USAGE ON SCHEMA regress_of_bob TO regress_ann;
SET ROLE regress_bob;
CREATE TABLE regress_of_bob.secrets (id bigint);
INSERT INTO regress_of_bob.secrets VALUES (1), (2);
ALTER TABLE regress_of_bob.secrets ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY one ON regress_of_bob.secrets USING (id = 1);
CREATE FUNCTION regress_of_bob.secrets() RETURNS bigint LANGUAGE sql SECURITY DEFINER SET row_security = on AS 'SELECT count(*) FROM regress_of_bob.secrets';
RESET ROLE; SET ROLE regress_super;
SELECT * FROM snowflake_internal.session_rows(:one, 'SELECT regress_of_bob.secrets() FROM regress_shared.one') AS r (a text);
DROP SCHEMA regress_of_bob CASCADE;
DROP OWNED BY regress_bob;
DROP ROLE regress_bob;

-- Who may not act as the owner has no such session. One who may needs no other right.
SET ROLE regress_eve;
SELECT * FROM snowflake_internal.session_rows(:one, 'SELECT 1 FROM regress_shared.one') AS r (a text);
SET ROLE regress_member;
SELECT * FROM snowflake_internal.session_rows(:one, 'SELECT current_user FROM regress_shared.one') AS r (a text);
RESET ROLE; SET ROLE regress_super;
-- A transaction that has written is refused: the session could wait for it.
BEGIN;
INSERT INTO regress_of_ann.two VALUES (1);
SELECT * FROM snowflake_internal.session_rows(:one, 'SELECT 1 FROM regress_shared.one') AS r (a text);
ROLLBACK;

-- A superuser's table, with the rights of its owner.
CREATE TABLE regress_of_ann.of_super (id bigint);
SELECT * FROM snowflake_internal.session_rows('regress_of_ann.of_super', 'SELECT current_user, count(*) FROM regress_of_ann.of_super') AS r (a text, b text);
SET ROLE regress_member;
SELECT * FROM snowflake_internal.session_rows('regress_of_ann.of_super', 'SELECT current_user, count(*) FROM regress_of_ann.of_super') AS r (a text, b text);
RESET ROLE; SET ROLE regress_super;

-- As they are stored: columns by name and type, also within a transaction that has written.
BEGIN;
INSERT INTO regress_shared.one VALUES (2);
SELECT * FROM snowflake_internal.stored_rows(:one) AS r (at timestamptz, id bigint) ORDER BY id;
ROLLBACK;
SELECT * FROM snowflake_internal.stored_rows(:one) AS r (id integer);
SELECT * FROM snowflake_internal.stored_rows(:one) AS r (number bigint);
SELECT * FROM snowflake_internal.stored_rows(0) AS r (id bigint);
CREATE VIEW regress_of_ann.v AS SELECT 1::bigint AS id;
SELECT * FROM snowflake_internal.stored_rows('regress_of_ann.v') AS r (id bigint);
SET ROLE regress_eve;
SELECT * FROM snowflake_internal.stored_rows(:one) AS r (id bigint);
SET ROLE regress_member;
SELECT * FROM snowflake_internal.stored_rows(:one) AS r (id bigint);
RESET ROLE; SET ROLE regress_super;

-- A superuser's table is not read where code of another role would run with the rights of a superuser.
CREATE TABLE public.regress_of_super (id bigint, n integer);
SELECT 'public.regress_of_super'::regclass::oid AS of_super \gset
SELECT * FROM snowflake_internal.session_rows(:of_super, 'SELECT count(*) FROM ONLY public.regress_of_super') AS r (a text);
CREATE FUNCTION public.regress_f(integer) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS $$
    BEGIN RAISE WARNING 'code of eve runs as %', current_user; RETURN 1; END $$;
ALTER FUNCTION public.regress_f OWNER TO regress_eve;
SET client_min_messages = error;
CREATE INDEX ON public.regress_of_super ((n + public.regress_f(1)));
SET client_min_messages = warning;
SELECT * FROM snowflake_internal.session_rows(:of_super, 'SELECT count(*) FROM ONLY public.regress_of_super') AS r (a text);
DROP TABLE public.regress_of_super;
DROP FUNCTION public.regress_f;

-- The name leads to a view of the owner of its schema, which reads the table; its code would have the rights of the table's owner.
SELECT format('GRANT CREATE ON DATABASE %I TO regress_eve', current_database()) \gexec
SET ROLE regress_eve;
ALTER SCHEMA regress_shared RENAME TO regress_away;
CREATE FUNCTION regress_away.note() RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS $$
    BEGIN RAISE WARNING 'code of eve runs as % of session %', current_user, session_user; RETURN 1; END $$;
RESET ROLE; SET ROLE regress_super;
CREATE SCHEMA regress_shared AUTHORIZATION regress_eve;
SET ROLE regress_ann;
GRANT SELECT ON regress_away.one TO regress_eve;
SET ROLE regress_eve;
GRANT USAGE ON SCHEMA regress_shared TO PUBLIC;
CREATE VIEW regress_shared.one AS SELECT * FROM regress_away.one WHERE regress_away.note() = 1;
GRANT SELECT ON regress_shared.one TO PUBLIC;
RESET ROLE; SET ROLE regress_super;
SELECT * FROM snowflake_internal.session_rows(:one, 'SELECT count(*) FROM ONLY regress_shared.one') AS r (a text);
SELECT * FROM snowflake_internal.stored_rows(:one) AS r (id bigint);

RESET ROLE;
DROP SCHEMA regress_of_ann, regress_away, regress_shared CASCADE;
DROP OWNED BY regress_super, regress_ann, regress_eve, regress_member;
DROP ROLE regress_super, regress_ann, regress_eve, regress_member;
