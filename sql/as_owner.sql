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

-- A role that the caller may act as. An expression that is evaluated while an object is made has its rights alone.
SET ROLE regress_hostile;
CREATE FUNCTION regress_shard.f(integer) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1; END';
CREATE DOMAIN regress_shard.checked AS text CHECK (regress_shard.f(1) = 1);
RESET ROLE;
SELECT snowflake_internal.run_as_role('regress_hostile', 'CREATE TABLE regress_shard.as_owner (a regress_shard.checked[] DEFAULT ''{1}'')');
SELECT relowner::regrole FROM pg_class WHERE oid = 'regress_shard.as_owner'::regclass;
SET ROLE regress_stranger;
SELECT snowflake_internal.run_as_role('regress_hostile', 'SELECT 1');
SELECT snowflake_internal.run_as_role('regress_nobody', 'SELECT 1');
RESET ROLE;

SET client_min_messages = warning;
DROP SCHEMA regress_shard CASCADE;
DROP TABLE regress_secret;
DROP ROLE regress_hostile, regress_member, regress_stranger;
