-- The same privileges as nextval(): USAGE or UPDATE to draw, UPDATE to advance, of the calling role.

CREATE ROLE snowflake_regress_owner;
CREATE ROLE snowflake_regress_user;
CREATE SCHEMA priv;
GRANT USAGE ON SCHEMA priv TO snowflake_regress_user, snowflake_regress_owner;
CREATE SEQUENCE priv.s;
ALTER SEQUENCE priv.s OWNER TO snowflake_regress_owner;

SET ROLE snowflake_regress_user;
SELECT snowflake_next_id(1, 'priv.s');
\set VERBOSITY sqlstate
SELECT snowflake_next_ids(1, 'priv.s', 1);
SELECT snowflake_advance('priv.s', 1);
-- privilege comes before what is wrong with the transaction or the sequence
BEGIN READ ONLY;
SELECT snowflake_next_id(1, 'priv.s');
ROLLBACK;
RESET ROLE;

GRANT USAGE ON SEQUENCE priv.s TO snowflake_regress_user;
SET ROLE snowflake_regress_user;
SELECT snowflake_next_id(1, 'priv.s') > 0 AS usage_draws;
SELECT snowflake_advance('priv.s', 1);
RESET ROLE;
REVOKE USAGE ON SEQUENCE priv.s FROM snowflake_regress_user;
GRANT UPDATE ON SEQUENCE priv.s TO snowflake_regress_user;
SET ROLE snowflake_regress_user;
SELECT snowflake_next_id(1, 'priv.s') > 0 AS update_draws;
SELECT snowflake_advance('priv.s', 1);
RESET ROLE;
REVOKE UPDATE ON SEQUENCE priv.s FROM snowflake_regress_user;
GRANT SELECT ON SEQUENCE priv.s TO snowflake_regress_user;
SET ROLE snowflake_regress_user;
SELECT snowflake_next_id(1, 'priv.s');
RESET ROLE;

-- A session that has drawn already loses the right when it is revoked, within a transaction too.
GRANT USAGE ON SEQUENCE priv.s TO snowflake_regress_user;
PREPARE draw AS SELECT snowflake_next_id(1, 'priv.s') > 0 AS drawn;
BEGIN;
SET LOCAL ROLE snowflake_regress_user;
EXECUTE draw;
RESET ROLE;
REVOKE USAGE ON SEQUENCE priv.s FROM snowflake_regress_user;
SET LOCAL ROLE snowflake_regress_user;
EXECUTE draw;
ROLLBACK;

-- Within one statement the role can change; each call is checked for its own.
CREATE FUNCTION priv.as_owner() RETURNS bigint LANGUAGE sql SECURITY DEFINER AS $$ SELECT public.snowflake_next_id(1, 'priv.s') $$;
ALTER FUNCTION priv.as_owner() OWNER TO snowflake_regress_owner;
REVOKE USAGE ON SEQUENCE priv.s FROM snowflake_regress_user;
SET ROLE snowflake_regress_user;
SELECT priv.as_owner() > 0 AS definer_draws;
SELECT priv.as_owner() > 0, snowflake_next_id(1, 'priv.s') FROM generate_series(1, 2);
RESET ROLE;
DO $$
DECLARE denied bool := false; id bigint;
BEGIN
    FOR i IN 1..3 LOOP
        PERFORM set_config('role', CASE WHEN i = 2 THEN 'snowflake_regress_user' ELSE 'snowflake_regress_owner' END, true);
        BEGIN
            id := public.snowflake_next_id(1, 'priv.s');
        EXCEPTION WHEN insufficient_privilege THEN denied := i = 2;
        END;
    END LOOP;
    IF NOT denied THEN RAISE 'the second call was not checked'; END IF;
END $$;

-- Every role sets the shard, but draws from the extension's own sequence only with a privilege on it.
-- The limits need a superuser or GRANT SET.
SET ROLE snowflake_regress_user;
SET snowflake.shard = 3;
SELECT snowflake_next_id();
RESET snowflake.shard;
SET snowflake.max_lead = 0;
SET snowflake.max_drift = -1;
RESET ROLE;
GRANT SET ON PARAMETER snowflake.max_lead TO snowflake_regress_user;
SET ROLE snowflake_regress_user;
SET snowflake.max_lead = 0;
RESET snowflake.max_lead;
RESET ROLE;
\set VERBOSITY default

REVOKE SET ON PARAMETER snowflake.max_lead FROM snowflake_regress_user;
SET client_min_messages = warning;
DROP SCHEMA priv CASCADE;
DROP ROLE snowflake_regress_owner, snowflake_regress_user;
