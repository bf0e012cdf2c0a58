-- Keys that check rows which replication writes, for the owner of their table.
SET client_min_messages = warning;
CREATE ROLE regress_ann;
CREATE ROLE regress_eve;
CREATE SCHEMA regress_keys AUTHORIZATION regress_ann;
CREATE TABLE regress_keys.shared (id integer PRIMARY KEY);
GRANT REFERENCES ON regress_keys.shared TO regress_ann;
SET ROLE regress_ann;
CREATE TABLE regress_keys.t (id integer PRIMARY KEY CHECK (id > 0), shared_id integer CONSTRAINT shared REFERENCES regress_keys.shared);
CREATE FUNCTION regress_keys.key() RETURNS oid LANGUAGE sql AS $$ SELECT oid FROM pg_constraint WHERE conname = 'shared' $$;
RESET ROLE;
CREATE VIEW regress_keys.firing AS
    SELECT tgrelid::regclass, tgfoid::regproc, tgenabled FROM pg_trigger WHERE tgconstraint = regress_keys.key() ORDER BY tgfoid::regproc::text;
-- Only those of the table with the key, and not those that are disabled.
ALTER TABLE regress_keys.t DISABLE TRIGGER ALL;
SELECT snowflake_internal.fire_key(regress_keys.key(), true);
TABLE regress_keys.firing;
ALTER TABLE regress_keys.t ENABLE TRIGGER ALL;
SET ROLE regress_ann;
SELECT snowflake_internal.fire_key(regress_keys.key(), true);
RESET ROLE;
TABLE regress_keys.firing;
SET session_replication_role = replica;
INSERT INTO regress_keys.t VALUES (1, 1);
SELECT snowflake_internal.fire_key(regress_keys.key(), false);
TABLE regress_keys.firing;
INSERT INTO regress_keys.t VALUES (1, 1);
RESET session_replication_role;
GRANT USAGE ON SCHEMA regress_keys TO regress_eve;
SET ROLE regress_eve;
SELECT snowflake_internal.fire_key(oid, true) FROM pg_constraint WHERE conname = 'shared';
RESET ROLE;
\set VERBOSITY sqlstate
SELECT snowflake_internal.fire_key(oid, true) FROM pg_constraint WHERE conname = 't_pkey' AND connamespace = 'regress_keys'::regnamespace;
\set VERBOSITY default
SELECT snowflake_internal.fire_key(0, true);
DROP SCHEMA regress_keys CASCADE;
DROP ROLE regress_ann, regress_eve;
