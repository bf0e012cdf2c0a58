-- Whose rights hold, and that what was looked at is what is used.
SET client_min_messages = warning;
CREATE ROLE regress_super SUPERUSER;
CREATE ROLE regress_ann;
CREATE ROLE regress_eve;
SET ROLE regress_super;
CREATE SCHEMA regress_of_ann AUTHORIZATION regress_ann;
CREATE SCHEMA regress_of_super;
GRANT USAGE ON SCHEMA regress_of_ann TO PUBLIC;

-- In a superuser's schema: whoever could run code there. Triggers do not fire for a query.
CREATE TABLE regress_of_super.t (id bigint PRIMARY KEY);
CREATE TABLE regress_of_super.of_eve (id bigint);
ALTER TABLE regress_of_super.of_eve OWNER TO regress_eve;
CREATE FUNCTION pg_temp.problems(OUT writes text, OUT reads text, OUT hint text) LANGUAGE sql AS $$
    SELECT regexp_replace(w.problem, '^.* regress_super, and (.*): code of .*$', '\1'), r.problem IS NOT NULL, w.hint
    FROM snowflake_internal.foreign_code('regress_of_super'::regnamespace, true) AS w,
         snowflake_internal.foreign_code('regress_of_super'::regnamespace, false) AS r $$;
SELECT * FROM pg_temp.problems();
GRANT CREATE ON SCHEMA regress_of_super TO regress_eve;
SELECT * FROM pg_temp.problems();
SELECT snowflake_internal.run_as_owner('regress_of_super', 'SELECT 1');
SELECT snowflake_internal.path_of_statement('regress_of_super', 'SELECT 1');
REVOKE CREATE ON SCHEMA regress_of_super FROM regress_eve;
GRANT TRIGGER ON regress_of_super.t TO PUBLIC;
SELECT * FROM pg_temp.problems();
SELECT snowflake_internal.run_as_owner('regress_of_super', 'SELECT 1');
BEGIN READ ONLY;
SELECT * FROM snowflake_internal.rows_as_owner('regress_of_super', 'SELECT current_user, count(*) FROM t') AS r (a text, b text);
COMMIT;
REVOKE TRIGGER ON regress_of_super.t FROM PUBLIC;
GRANT REFERENCES ON regress_of_super.t TO regress_eve;
SELECT * FROM pg_temp.problems();
-- The hint names the schema of a child.
CREATE SCHEMA regress_of_child;
CREATE TABLE regress_of_child.c () INHERITS (regress_of_super.t);
GRANT TRIGGER ON regress_of_child.c TO regress_eve;
REVOKE REFERENCES ON regress_of_super.t FROM regress_eve;
SELECT * FROM pg_temp.problems();
DROP SCHEMA regress_of_child CASCADE;
GRANT REFERENCES ON regress_of_super.t TO regress_eve;
CREATE TABLE regress_of_ann.refers (id bigint REFERENCES regress_of_super.t ON DELETE CASCADE);
ALTER TABLE regress_of_ann.refers OWNER TO regress_eve;
REVOKE REFERENCES ON regress_of_super.t FROM regress_eve;
SELECT * FROM pg_temp.problems();
DROP TABLE regress_of_ann.refers;
CREATE FUNCTION regress_of_ann.fired() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
ALTER FUNCTION regress_of_ann.fired() OWNER TO regress_eve;
CREATE TRIGGER fires BEFORE INSERT ON regress_of_super.t FOR EACH ROW EXECUTE FUNCTION regress_of_ann.fired();
SELECT * FROM pg_temp.problems();
DROP TRIGGER fires ON regress_of_super.t;
CREATE VIEW regress_of_super.v AS SELECT 1 AS a;
ALTER VIEW regress_of_super.v OWNER TO regress_eve;
SELECT * FROM pg_temp.problems();
DROP VIEW regress_of_super.v;
CREATE DOMAIN regress_of_super.d AS text;
ALTER DOMAIN regress_of_super.d OWNER TO regress_eve;
SELECT * FROM pg_temp.problems();
DROP DOMAIN regress_of_super.d;
-- A role that is no superuser has its own rights there; another one's schema is no superuser's.
SET ROLE regress_eve;
SELECT problem FROM snowflake_internal.foreign_code('regress_of_super'::regnamespace, true);
RESET ROLE; SET ROLE regress_super;
SELECT problem FROM snowflake_internal.foreign_code('regress_of_ann'::regnamespace, true);

-- The owner's, or the caller's.
SELECT snowflake_internal.is_callers('regress_of_ann') AS others, snowflake_internal.is_callers('regress_of_super') AS own;
SET ROLE regress_eve;
SELECT snowflake_internal.is_callers('regress_of_ann') AS of_stranger;
SELECT * FROM snowflake_internal.rows_as_owner('regress_of_ann', 'SELECT current_user') AS r (a text);
SET ROLE regress_ann;
SELECT snowflake_internal.is_callers('regress_of_ann') AS of_owner;
RESET ROLE; SET ROLE regress_super;
SELECT snowflake_internal.path_of_statement('regress_of_ann', 'VACUUM t');
SELECT snowflake_internal.path_of_statement('regress_of_ann', 'CALL p()');
SELECT snowflake_internal.path_of_statement('regress_of_super', 'CALL p()');
SELECT snowflake_internal.path_of_statement(1, 'VACUUM t');
-- In the caller's schema: deferred constraints stay deferred, settings end with the function.
SELECT snowflake_internal.run_as_owner('regress_of_super', 'SET statement_timeout = ''5s''; CREATE TABLE made (a integer UNIQUE DEFERRABLE INITIALLY DEFERRED);
    INSERT INTO made VALUES (1), (1); DELETE FROM made');
SHOW statement_timeout;

-- The rows of a table, and of no table of another owner: also where a name or a child leads to one.
CREATE TABLE regress_of_ann.one (id bigint);
CREATE TABLE regress_of_ann.two (id bigint);
CREATE TABLE regress_of_ann.evil (id bigint);
CREATE TABLE regress_of_ann.child () INHERITS (regress_of_ann.one);
INSERT INTO regress_of_ann.one VALUES (1);
ALTER TABLE regress_of_ann.one OWNER TO regress_ann;
ALTER TABLE regress_of_ann.two OWNER TO regress_ann;
ALTER TABLE regress_of_ann.evil OWNER TO regress_eve;
ALTER TABLE regress_of_ann.child OWNER TO regress_ann;
SELECT 'regress_of_ann.one'::regclass::oid AS one \gset
SELECT * FROM snowflake_internal.rows_as_table_owner(:one, 'SELECT current_user, count(*) FROM regress_of_ann.one') AS r (a text, b text);
SELECT * FROM snowflake_internal.rows_as_table_owner(:one, 'SELECT 1::text FROM regress_of_ann.one AS o WHERE NOT EXISTS (SELECT FROM regress_of_ann.two AS t WHERE t.id = o.id)') AS r (a text);
SELECT * FROM snowflake_internal.rows_as_table_owner(:one, 'SELECT 1::text FROM regress_of_ann.two') AS r (a text);
SELECT * FROM snowflake_internal.rows_as_table_owner(:one, 'SELECT 1::text FROM regress_of_ann.one AS o WHERE EXISTS (SELECT FROM regress_of_ann.evil AS t WHERE t.id = o.id)') AS r (a text);
SELECT * FROM snowflake_internal.rows_as_table_owner(:one, 'WITH e AS MATERIALIZED (TABLE regress_of_ann.evil) SELECT 1::text FROM regress_of_ann.one, e') AS r (a text);
ALTER TABLE regress_of_ann.child OWNER TO regress_eve;
SELECT * FROM snowflake_internal.rows_as_table_owner(:one, 'SELECT 1::text FROM regress_of_ann.one') AS r (a text);
SELECT * FROM snowflake_internal.rows_as_table_owner(:one, 'SELECT 1::text FROM ONLY regress_of_ann.one') AS r (a text);
-- Catalogues may be read, too.
SELECT * FROM snowflake_internal.rows_as_table_owner(:one, 'SELECT count(*) FROM ONLY regress_of_ann.one, pg_stat_activity WHERE pid = pg_backend_pid()') AS r (a text);
-- Row security that is forced on the owner hides no row from a superuser, and goes on for all others.
ALTER TABLE regress_of_ann.one ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
SELECT * FROM snowflake_internal.rows_as_owner('regress_of_ann', 'SELECT count(*) FROM ONLY one') AS r (a text);
SET ROLE regress_ann;
SELECT * FROM snowflake_internal.rows_as_owner('regress_of_ann', 'SELECT count(*) FROM ONLY one') AS r (a text);
RESET ROLE; SET ROLE regress_super;
-- The expectation is of one query.
SELECT count(*) FROM regress_of_ann.evil;

-- Functions are replaced, and none is made: not a dropped one, and none of another owner.
CREATE FUNCTION regress_of_ann.f() RETURNS text LANGUAGE sql SECURITY DEFINER AS 'SELECT current_user::text';
CREATE FUNCTION regress_of_ann.g() RETURNS text LANGUAGE sql AS 'SELECT 1::text';
ALTER FUNCTION regress_of_ann.f() OWNER TO regress_ann;
ALTER FUNCTION regress_of_ann.g() OWNER TO regress_eve;
SELECT 'regress_of_ann.f'::regproc::oid AS f, 'regress_of_ann.g'::regproc::oid AS g, 'regress_ann'::regrole::oid AS ann \gset
SELECT pg_get_functiondef(:f) AS definition, pg_get_functiondef(:g) AS other \gset
SELECT snowflake_internal.replace_guarded(:'definition', ARRAY[:f]::oid[], ARRAY[:ann]::oid[]);
SELECT oid = :f AS is_the_same, proowner::regrole FROM pg_proc WHERE oid = 'regress_of_ann.f'::regproc;
SELECT snowflake_internal.replace_guarded(:'other', ARRAY[:f]::oid[], ARRAY[:ann]::oid[]);
SELECT snowflake_internal.replace_guarded(:'definition', '{}', '{}');
SELECT snowflake_internal.replace_guarded(:'definition', ARRAY[:f]::oid[], '{}');
DROP FUNCTION regress_of_ann.f();
\set VERBOSITY sqlstate
SELECT snowflake_internal.replace_guarded(:'definition', ARRAY[:f]::oid[], ARRAY[:ann]::oid[]);
SELECT snowflake_internal.replace_guarded(:'other', ARRAY[:g]::oid[], ARRAY[:ann]::oid[]);
\set VERBOSITY default
-- The name leads elsewhere: the schema was renamed.
CREATE FUNCTION regress_of_ann.f() RETURNS text LANGUAGE sql AS 'SELECT 1::text';
ALTER FUNCTION regress_of_ann.f() OWNER TO regress_ann;
SELECT 'regress_of_ann.f'::regproc::oid AS f \gset
ALTER SCHEMA regress_of_ann RENAME TO regress_away;
CREATE SCHEMA regress_of_ann AUTHORIZATION regress_eve;
SELECT snowflake_internal.replace_guarded(:'definition', ARRAY[:f]::oid[], ARRAY[:ann]::oid[]);
SELECT to_regproc('regress_of_ann.f') IS NULL AS is_not_made;

RESET ROLE;
DROP SCHEMA regress_of_ann, regress_away, regress_of_super CASCADE;
DROP OWNED BY regress_super, regress_ann, regress_eve;
DROP ROLE regress_super, regress_ann, regress_eve;
