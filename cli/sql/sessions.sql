-- name: lock_holders
-- The halves of the key are in classid and objid. A prepared transaction has no pid; its virtualtransaction ends with its XID. A role that
-- may not read the statistics of others sees no backend_start, and a role that was dropped has no name: concat_ws() leaves these out.
SELECT string_agg(DISTINCT CASE WHEN l.pid IS NULL THEN format('prepared transaction %L', gid)
                                ELSE concat_ws(', ', 'process ' || l.pid, 'role ' || quote_ident(usename),
                                               'application ' || NULLIF(application_name, ''),
                                               'connected since ' || backend_start::timestamp(0)) END, '; '),
       string_agg(DISTINCT CASE WHEN l.pid IS NULL THEN format('ROLLBACK PREPARED %L;', gid)
                                ELSE format('SELECT pg_terminate_backend(%s);', l.pid) END, ' ')
FROM pg_locks AS l CROSS JOIN hashtextextended($1, 0) AS key
LEFT JOIN pg_stat_activity AS a ON a.pid = l.pid
LEFT JOIN pg_prepared_xacts AS p ON l.pid IS NULL AND p.transaction::text = split_part(l.virtualtransaction, '/', 2)
WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
AND l.classid::bigint = (key >> 32) & 4294967295 AND l.objid::bigint = key & 4294967295
AND l.pid IS DISTINCT FROM pg_backend_pid()

-- name: session_settings
-- Settings that this server does not have, or does not let us set, are left out.
--
-- An autovacuum that is in the way is ended after deadlock_timeout. With client_connection_check_interval (14) the backend of a killed
-- command ends also while it works or waits for a lock; without an answer of a host that has vanished it ends after a minute
-- (tcp_keepalives_*, tcp_user_timeout). synchronous_commit = on: a step that the command has seen committed must survive a crash, because
-- the next step on the other server relies on it. standard_conforming_strings: SQL is written for it.
SELECT set_config(name, s.setting, false)
FROM (VALUES ('client_min_messages', 'error'), ('synchronous_commit', 'on'), ('row_security', 'off'),
             ('statement_timeout', '0'), ('lock_timeout', '0'), ('transaction_timeout', '0'),
             ('idle_in_transaction_session_timeout', '0'), ('idle_session_timeout', '0'),
             ('default_transaction_read_only', 'off'), ('default_transaction_isolation', 'read committed'),
             ('session_replication_role', 'origin'),
             ('standard_conforming_strings', 'on'), ('client_connection_check_interval', '500ms'),
             ('tcp_keepalives_idle', '30'), ('tcp_keepalives_interval', '10'), ('tcp_keepalives_count', '3'),
             ('tcp_user_timeout', '60s'), ('deadlock_timeout', '10ms')) AS s (name, setting)
JOIN pg_settings AS p USING (name)
WHERE p.context <> 'superuser' OR has_parameter_privilege(name, 'SET')
