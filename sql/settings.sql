-- The settings: defaults, units, bounds, and what they do.

SELECT snowflake_next_id(1, 'snowflake_id_seq') > 0 AS loaded;
SELECT name, setting, unit, context, vartype, min_val, max_val, boot_val FROM pg_settings WHERE name LIKE 'snowflake.%' ORDER BY name;
\dconfig snowflake.*
SHOW snowflake.max_lead;
SHOW snowflake.max_drift;
\set VERBOSITY sqlstate
SET snowflake.shard = 8192;
SET snowflake.shard = -2;
SET snowflake.max_lead = -1;
SET snowflake.max_lead = '2h';
SET snowflake.max_drift = -2;
SET snowflake.no_such_setting = 1;
\set VERBOSITY default

-- A setting that is made before the library is loaded is checked when it is.
\c -
SET snowflake.max_lead = '250ms';
SELECT snowflake_next_id(1, 'snowflake_id_seq') > 0 AS loaded;
SHOW snowflake.max_lead;
RESET snowflake.max_lead;

-- shard
CREATE SEQUENCE lead;
SET snowflake.shard = 8191;
SELECT snowflake_shard(snowflake_next_id());
RESET snowflake.shard;

-- max_lead: 3,000 positions in a moment lead the clock by more than a millisecond, or wait for it.
CREATE FUNCTION lead_after(ids int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE lead bigint;
BEGIN
    PERFORM snowflake_next_id(1, 'lead') FROM generate_series(1, ids);
    SELECT (last_value >> 10) - (extract(epoch FROM clock_timestamp()) * 1000)::bigint INTO lead FROM lead;
    RETURN lead;
END $$;
SET snowflake.max_lead = 0;
SELECT lead_after(5000) <= 0 AS paced;
SET snowflake.max_lead = '20ms';
SELECT lead_after(100000) <= 20 AS paced_at_20_ms;
SET snowflake.max_lead = '1h';
-- (a busy machine can be too slow to run ahead: then again)
CREATE FUNCTION runs_ahead(tries int) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    FOR i IN 1..tries LOOP
        IF snowflake_timestamp(max(id)) > clock_timestamp() + '20 ms' FROM snowflake_next_ids(1, 'lead', 1000000) AS id THEN
            RETURN true;
        END IF;
    END LOOP;
    RETURN false;
END $$;
SELECT runs_ahead(10) AS ran_ahead;
RESET snowflake.max_lead;

-- max_drift
CREATE SEQUENCE drifting;
SELECT setval('drifting', ((extract(epoch FROM clock_timestamp()) * 1000)::bigint + 30000) << 10) \g /dev/null
SELECT last_value AS position FROM drifting \gset
\set VERBOSITY sqlstate
SET snowflake.max_drift = '20s';
SELECT snowflake_next_id(1, 'drifting');
SET snowflake.max_drift = '40s';
\set VERBOSITY default
SELECT snowflake_next_id(1, 'drifting') > 0 AS within_drift;
SELECT last_value = :position + 1 AS goes_on FROM drifting;
SET snowflake.max_drift = -1;
SELECT setval('drifting', ((extract(epoch FROM clock_timestamp()) * 1000)::bigint + 86400000) << 10) \g /dev/null
SELECT snowflake_next_id(1, 'drifting') > 0 AS any_drift;
SELECT clock_timestamp() AS start \gset
SELECT count(snowflake_next_id(1, 'drifting')) FROM generate_series(1, 20480);
SELECT clock_timestamp() - :'start' >= interval '19 ms' AS paced_at_1024_per_ms;
RESET snowflake.max_drift;

DROP FUNCTION lead_after, runs_ahead;
DROP SEQUENCE lead, drifting;

-- A session that has not called the extension does not know its settings yet: then PostgreSQL lets superusers store them alone.
CREATE ROLE regress_snowflake_owner;
\c -
SET ROLE regress_snowflake_owner;
ALTER ROLE regress_snowflake_owner SET snowflake.shard = 5;
SELECT snowflake_shard(0);
ALTER ROLE regress_snowflake_owner SET snowflake.shard = 5;
RESET ROLE;
DROP ROLE regress_snowflake_owner;
