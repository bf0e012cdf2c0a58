-- Rows in a format of COPY, inserted as the owner of the table.
SET client_min_messages = warning;
CREATE ROLE regress_super SUPERUSER;
CREATE ROLE regress_ann;
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
-- A trigger that copies rows itself, and catches the error, ends no outer copy.
SET ROLE regress_ann;
CREATE TABLE regress_rows.outer_rows (id bigint);
CREATE FUNCTION regress_rows.copies() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    BEGIN
        PERFORM snowflake_internal.copy_rows('regress_rows.users', '{id}', 'text', 'x');
    EXCEPTION WHEN OTHERS THEN
        INSERT INTO regress_rows.seen VALUES (sqlerrm);
    END;
    RETURN NEW;
END $$;
CREATE TRIGGER copies BEFORE INSERT ON regress_rows.outer_rows FOR EACH ROW EXECUTE FUNCTION regress_rows.copies();
ALTER TABLE regress_rows.outer_rows ENABLE ALWAYS TRIGGER copies;
RESET ROLE;
GRANT EXECUTE ON FUNCTION snowflake_internal.copy_rows(regclass, text[], text, bytea) TO regress_ann;
SELECT snowflake_internal.copy_rows('regress_rows.outer_rows', '{id}', 'text',
    convert_to((SELECT string_agg(n || E'\n', '' ORDER BY n) FROM generate_series(1, 30000) AS n), 'UTF8'));
REVOKE EXECUTE ON FUNCTION snowflake_internal.copy_rows(regclass, text[], text, bytea) FROM regress_ann;
SELECT count(*), max(id) FROM regress_rows.outer_rows;
SELECT who, count(*) FROM regress_rows.seen WHERE who ~ 'input' GROUP BY who;
-- Triggers fire as in an apply worker: neither ordinary ones nor those of a foreign key.
SET ROLE regress_ann;
CREATE TABLE regress_rows.fired (of text);
CREATE FUNCTION regress_rows.fires() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO regress_rows.fired VALUES (tg_argv[0] || ', ' || current_setting('session_replication_role'));
    RETURN NEW;
END $$;
CREATE TABLE regress_rows.child (id bigint REFERENCES regress_rows.users);
CREATE TRIGGER ordinary BEFORE INSERT ON regress_rows.child FOR EACH ROW EXECUTE FUNCTION regress_rows.fires('ordinary');
CREATE TRIGGER always BEFORE INSERT ON regress_rows.child FOR EACH ROW EXECUTE FUNCTION regress_rows.fires('always');
CREATE TRIGGER replica BEFORE INSERT ON regress_rows.child FOR EACH ROW EXECUTE FUNCTION regress_rows.fires('replica');
ALTER TABLE regress_rows.child ENABLE ALWAYS TRIGGER always;
ALTER TABLE regress_rows.child ENABLE REPLICA TRIGGER replica;
RESET ROLE;
SELECT snowflake_internal.copy_rows('regress_rows.child', '{id}', 'text', convert_to(E'-1\n', 'UTF8'));
SELECT of FROM regress_rows.fired ORDER BY 1;
SHOW session_replication_role;
INSERT INTO regress_rows.child VALUES (-2);
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
