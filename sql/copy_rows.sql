-- Rows in a format of COPY, inserted in a session of the table's owner, who needs LOGIN before PostgreSQL 17.
SET client_min_messages = warning;
CREATE ROLE regress_super SUPERUSER LOGIN;
CREATE ROLE regress_ann LOGIN;
CREATE ROLE regress_eve;
SET ROLE regress_super;
CREATE SCHEMA regress_rows AUTHORIZATION regress_ann;
GRANT USAGE ON SCHEMA regress_rows TO regress_eve;
SET ROLE regress_ann;
CREATE FUNCTION regress_rows.who(text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF $1 = 'climb' THEN EXECUTE 'SET ROLE regress_super'; END IF;
    INSERT INTO regress_rows.seen VALUES (current_user::text);
    RETURN $1 <> 'bad';
END $$;
CREATE TABLE regress_rows.seen (who text);
CREATE TABLE regress_rows.users (id bigint PRIMARY KEY, name text CHECK (regress_rows.who(name)), made text DEFAULT current_user,
    twice bigint GENERATED ALWAYS AS (2 * id) STORED);
CREATE VIEW regress_rows.v AS SELECT 1 AS id;
RESET ROLE; SET ROLE regress_super;
SELECT snowflake_internal.copy_rows('regress_rows.users', '{id,name}', 'text', convert_to(E'1\tone\n2\t\\N\n', 'UTF8'));
SELECT snowflake_internal.copy_rows('regress_rows.users', '{name,id}', 'csv', convert_to(E'"x, y",3\n', 'UTF8'));
-- One column of 8 bytes in the binary format: 4.
SELECT snowflake_internal.copy_rows('regress_rows.users', '{id}', 'binary',
    '\x5047434f50590aff0d0a00'::bytea || '\x0000000000000000' || '\x0001' || '\x00000008' || '\x0000000000000004' || '\xffff');
TABLE regress_rows.users;
SELECT DISTINCT who FROM regress_rows.seen;
SELECT snowflake_internal.copy_rows('regress_rows.users', '{id}', 'text', '');
-- An error of a row names it, and nothing of the piece stays.
SELECT snowflake_internal.copy_rows('regress_rows.users', '{id,name}', 'text', convert_to(E'5\tgood\n6\tbad\n', 'UTF8'));
SELECT snowflake_internal.copy_rows('regress_rows.users', '{id,name}', 'text', convert_to(E'5\tclimb\n', 'UTF8'));
SELECT snowflake_internal.copy_rows('regress_rows.users', '{id,name}', 'text', convert_to(E'x\ty\n', 'UTF8'));
SELECT snowflake_internal.copy_rows('regress_rows.users', '{id,name}', 'binary', '\x5047');
SELECT snowflake_internal.copy_rows('regress_rows.users', '{none}', 'text', '');
SELECT snowflake_internal.copy_rows('regress_rows.users', '{twice}', 'text', '');
SELECT snowflake_internal.copy_rows('regress_rows.users', '{id}', 'yaml', '');
SELECT snowflake_internal.copy_rows('regress_rows.users', '{NULL}', 'text', '');
SELECT snowflake_internal.copy_rows('regress_rows.v', '{id}', 'text', '');
SELECT snowflake_internal.copy_rows(0, '{id}', 'text', '');
BEGIN READ ONLY;
SELECT snowflake_internal.copy_rows('regress_rows.users', '{id}', 'text', '');
ROLLBACK;
SELECT count(*), max(id) FROM regress_rows.users;
-- Code of the table can do what its owner can do. A table of another role keeps its keys and its audit; of rows that are hidden from a third
-- role, a function of that role counts none.
CREATE ROLE regress_bob LOGIN;
CREATE SCHEMA regress_of_bob AUTHORIZATION regress_bob;
SET ROLE regress_bob;
CREATE TABLE regress_of_bob.orders (id bigint PRIMARY KEY);
CREATE TABLE regress_of_bob.items (id bigint REFERENCES regress_of_bob.orders);
CREATE TABLE regress_of_bob.audit (what text, by text);
CREATE FUNCTION regress_of_bob.note() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    INSERT INTO regress_of_bob.audit VALUES (tg_op || ' ' || old.id, session_user);
    RETURN old;
END $$;
CREATE TRIGGER audit AFTER DELETE ON regress_of_bob.orders FOR EACH ROW EXECUTE FUNCTION regress_of_bob.note();
INSERT INTO regress_of_bob.orders VALUES (1), (2);
INSERT INTO regress_of_bob.items VALUES (1);
CREATE TABLE regress_of_bob.secrets (id bigint);
INSERT INTO regress_of_bob.secrets VALUES (1), (2);
ALTER TABLE regress_of_bob.secrets ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY one ON regress_of_bob.secrets USING (id = 1);
CREATE FUNCTION regress_of_bob.secrets() RETURNS bigint LANGUAGE sql SECURITY DEFINER SET row_security = on AS 'SELECT count(*) FROM regress_of_bob.secrets';
GRANT USAGE ON SCHEMA regress_of_bob TO regress_ann;
GRANT SELECT, DELETE ON regress_of_bob.orders TO regress_ann;
SET ROLE regress_ann;
CREATE FUNCTION regress_rows.deletes(bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM regress_of_bob.orders WHERE id = $1;
    INSERT INTO regress_rows.seen SELECT format('%s, secrets: %s', current_setting('session_replication_role'), regress_of_bob.secrets());
    RETURN true;
END $$;
CREATE TABLE regress_rows.planted (id bigint CHECK (regress_rows.deletes(id)));
RESET ROLE; SET ROLE regress_super;
SELECT snowflake_internal.copy_rows('regress_rows.planted', '{id}', 'text', convert_to(E'1\n', 'UTF8'));
SELECT snowflake_internal.copy_rows('regress_rows.planted', '{id}', 'text', convert_to(E'2\n', 'UTF8'));
SELECT * FROM regress_of_bob.orders;
SELECT * FROM regress_of_bob.audit;
SELECT who FROM regress_rows.seen WHERE who ~ 'secrets';
RESET ROLE;
DROP SCHEMA regress_of_bob CASCADE;
DROP OWNED BY regress_bob;
DROP ROLE regress_bob;
-- EXECUTE is nobody's.
SET ROLE regress_ann;
SELECT snowflake_internal.copy_rows('regress_rows.users', '{id}', 'text', '');
RESET ROLE;
GRANT EXECUTE ON FUNCTION snowflake_internal.copy_rows(regclass, text[], text, bytea) TO regress_eve;
SET ROLE regress_eve;
SELECT snowflake_internal.copy_rows('regress_rows.users', '{id}', 'text', '7');
RESET ROLE;
REVOKE EXECUTE ON FUNCTION snowflake_internal.copy_rows(regclass, text[], text, bytea) FROM regress_eve;
DROP SCHEMA regress_rows CASCADE;
DROP OWNED BY regress_super, regress_ann, regress_eve;
DROP ROLE regress_super, regress_ann, regress_eve;
