-- Whose rights hold, and that what was looked at is what is used.
SET client_min_messages = warning;
CREATE ROLE regress_super SUPERUSER LOGIN;
CREATE ROLE regress_ann LOGIN;
CREATE ROLE regress_eve;
SET ROLE regress_super;
CREATE SCHEMA regress_of_ann AUTHORIZATION regress_ann;
CREATE SCHEMA regress_of_super;
GRANT USAGE ON SCHEMA regress_of_ann TO PUBLIC;

-- In a superuser's schema: whoever could run code there.
CREATE TABLE regress_of_super.t (id bigint PRIMARY KEY);
CREATE FUNCTION pg_temp.problems(OUT problem text, OUT hint text) LANGUAGE sql AS $$
    SELECT regexp_replace(s.problem, '^.* regress_super, and (.*): code of .*$', '\1'), s.hint
    FROM snowflake_internal.session_problem('regress_of_super') AS s $$;
SELECT * FROM pg_temp.problems();
GRANT CREATE ON SCHEMA regress_of_super TO regress_eve;
SELECT * FROM pg_temp.problems();
SELECT snowflake_internal.session_begin('regress_of_super', '');
REVOKE CREATE ON SCHEMA regress_of_super FROM regress_eve;
GRANT TRIGGER ON regress_of_super.t TO PUBLIC;
SELECT * FROM pg_temp.problems();
REVOKE TRIGGER ON regress_of_super.t FROM PUBLIC;
GRANT REFERENCES (id) ON regress_of_super.t TO regress_eve;
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
CREATE FUNCTION regress_of_ann.is_fine(bigint) RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN true; END';
ALTER FUNCTION regress_of_ann.is_fine(bigint) OWNER TO regress_eve;
CREATE INDEX fine ON regress_of_super.t (regress_of_ann.is_fine(id));
SELECT * FROM pg_temp.problems();
DROP INDEX regress_of_super.fine;
CREATE TABLE regress_of_super.of_eve (id bigint);
ALTER TABLE regress_of_super.of_eve OWNER TO regress_eve;
SELECT * FROM pg_temp.problems();
DROP TABLE regress_of_super.of_eve;
CREATE VIEW regress_of_super.v AS SELECT 1 AS a;
ALTER VIEW regress_of_super.v OWNER TO regress_eve;
SELECT * FROM pg_temp.problems();
DROP VIEW regress_of_super.v;
CREATE DOMAIN regress_of_super.d AS text;
ALTER DOMAIN regress_of_super.d OWNER TO regress_eve;
SELECT * FROM pg_temp.problems();
DROP DOMAIN regress_of_super.d;
-- What only reads a table of the schema, or draws from a sequence, does not run there.
CREATE SEQUENCE regress_of_super.table_id_seq;
GRANT ALL ON SEQUENCE regress_of_super.table_id_seq TO regress_eve;
CREATE VIEW regress_of_ann.reads AS SELECT id FROM regress_of_super.t;
ALTER VIEW regress_of_ann.reads OWNER TO regress_eve;
CREATE FUNCTION regress_of_ann.counts() RETURNS bigint LANGUAGE sql RETURN (SELECT count(*) FROM regress_of_super.t);
ALTER FUNCTION regress_of_ann.counts() OWNER TO regress_eve;
SELECT * FROM pg_temp.problems();
-- Another role's schema is no superuser's.
SELECT * FROM snowflake_internal.session_problem('regress_of_ann');

-- A schema is locked for a role that may act as its owner, or may create objects there. The owner of the database stands for pg_database_owner.
CREATE FUNCTION pg_temp.locked() RETURNS SETOF regnamespace LANGUAGE sql AS $$ SELECT objid::regnamespace FROM pg_locks
    WHERE locktype = 'object' AND classid = 'pg_namespace'::regclass AND pid = pg_backend_pid() AND NOT objid::regnamespace::text ~ '^pg_' $$;
BEGIN;
SELECT snowflake_internal.lock_schema('regress_of_ann'), snowflake_internal.lock_schema('regress_of_super'), snowflake_internal.lock_schema('public');
SET LOCAL ROLE regress_ann;
SELECT snowflake_internal.lock_schema('regress_of_ann');
SAVEPOINT s;
SELECT snowflake_internal.lock_schema('public');
ROLLBACK TO s;
SELECT snowflake_internal.lock_schema(0::oid::regnamespace);
ROLLBACK TO s;
SELECT pg_temp.locked() ORDER BY 1;
ROLLBACK;
BEGIN;
SET LOCAL ROLE regress_eve;
SAVEPOINT s;
SELECT snowflake_internal.lock_schema('regress_of_ann');
ROLLBACK TO s;
SELECT pg_temp.locked() ORDER BY 1;
RESET ROLE;
GRANT CREATE ON SCHEMA regress_of_ann TO regress_eve;
SET LOCAL ROLE regress_eve;
SELECT snowflake_internal.lock_schema('regress_of_ann');
ROLLBACK;

RESET ROLE;
DROP SCHEMA regress_of_ann, regress_of_super CASCADE;
DROP OWNED BY regress_super, regress_ann, regress_eve;
DROP ROLE regress_super, regress_ann, regress_eve;
