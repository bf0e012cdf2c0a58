-- name: reached
-- In milliseconds: the time of the last ID of the schemas $1, or the clock if that is later; the clock; and snowflake.max_drift. A position
-- is below 2^53, and other sequences have smaller numbers. One that is further ahead than draws permit here is left out: it makes no IDs here,
-- either. stored_value() is NULL for a sequence that another session has locked.
--
-- By pg_depend, which has an index on the schema: there may be thousands of shards, and each set of a list asks.
SELECT greatest(ms, (
           SELECT max(last_value >> 10) FROM pg_namespace AS n
           JOIN pg_depend AS d ON refclassid = 'pg_namespace'::regclass AND refobjid = n.oid AND classid = 'pg_class'::regclass
           JOIN pg_sequence ON seqrelid = objid CROSS JOIN LATERAL snowflake_internal.stored_value(seqrelid)
           WHERE nspname = ANY ($1::name[]) AND last_value < 1::bigint << 53 AND (max_drift < 0 OR (last_value >> 10) - ms <= max_drift))),
       ms, max_drift
FROM (SELECT setting::bigint FROM pg_settings WHERE name = 'snowflake.max_drift') AS s (max_drift),
     (SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint) AS c (ms)

-- name: slow_clock
-- As decide_draw(). $1, $2, $3: the row of the other server, see above; $4: the title of that server.
SELECT format('its clock is %s s behind %s%s, and snowflake.max_drift is %s s: a draw would be an error', lead / 1000,
              CASE WHEN $1::bigint > $2::bigint THEN 'the last ID of ' ELSE 'that of ' END, $4::text, max_drift / 1000),
       'Set the clock right.' || CASE WHEN $3::bigint NOT BETWEEN 0 AND max_drift
                                      THEN format(' If it is right: snowflake.max_drift = %s, as on %s.', $3, $4) ELSE '' END
FROM (SELECT max(setting::bigint) FILTER (WHERE name = 'snowflake.max_drift'), max(setting::bigint) FILTER (WHERE name = 'snowflake.max_lead')
      FROM pg_settings) AS s (max_drift, max_lead),
     (SELECT $1::bigint - floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint) AS c (lead)
WHERE max_drift >= 0 AND lead > greatest(max_drift, max_lead)

-- name: read_only
-- default_transaction_read_only: its value; whether it is of the role; its origin; and the statement that turns it off. A standby takes no
-- ALTER ROLE, and gets it by the WAL.
SELECT setting, source IN ('user', 'database user'), concat_ws(' ', source, sourcefile),
       CASE WHEN place IS NULL THEN 'Remove it there, and SELECT pg_reload_conf();'
            ELSE format('ALTER %s RESET default_transaction_read_only;', place)
                 || CASE WHEN pg_is_in_recovery() THEN ' on the server of --from' ELSE '' END
       END
FROM pg_settings,
LATERAL (SELECT CASE source WHEN 'global' THEN 'ROLE ALL'
                            WHEN 'database' THEN format('DATABASE %I', current_database())
                            WHEN 'user' THEN format('ROLE %I', session_user)
                            WHEN 'database user' THEN format('ROLE %I IN DATABASE %I', session_user, current_database()) END) AS p (place)
WHERE name = 'default_transaction_read_only'
