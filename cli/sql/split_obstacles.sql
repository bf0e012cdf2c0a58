-- name: on_old_server
-- Rows are obstacles: the problem, and the remedy. $1: schemas of the shards; $2: seconds of --timeout.
--
-- Owners: ENABLE ALWAYS TRIGGER and ALTER SEQUENCE need the privileges of the owner, --complete those of the owner of the schema. USAGE of
-- pg_has_role() is to have them without SET ROLE.
--
-- Transactions: the fence waits for those that have written, so only those with an XID are told. Other databases have no locks on the
-- shards. Logical slots are those of all databases, because the promotion takes the whole cluster along. The slots of global tables stay
-- where these are written: on the old server. The other slots of this database are made on the new server, too, see make_slots().
--
-- Settings: that of a role or a database takes precedence over the one of ALTER SYSTEM, which protects the new server until it is opened.
-- CASE keeps the cast to boolean from the values of other settings, where it would be an error: the conditions of WHERE have no order. The
-- cast reads F or no as the server does.
WITH shards AS (SELECT oid, nspname FROM pg_namespace WHERE nspname = ANY ($1::name[]))
SELECT format('role %I may make no schema in database %I', current_user, current_database()),
       format('GRANT CREATE ON DATABASE %I TO %I;', current_database(), current_user)
WHERE NOT has_database_privilege(current_database(), 'CREATE')
UNION ALL
SELECT format('role %I may make no replication slot, which the cutover needs', current_user), format('ALTER ROLE %I REPLICATION;', current_user)
FROM pg_roles WHERE rolname = current_user AND NOT rolsuper AND NOT rolreplication
UNION ALL
SELECT format('max_replication_slots = %s, all in use; the cutover needs one more', n), format('ALTER SYSTEM SET max_replication_slots = %s; and restart the server, or drop a slot that nobody uses', n::integer + 1)
FROM current_setting('max_replication_slots') AS n WHERE n::integer <= (SELECT count(*) FROM pg_replication_slots)
UNION ALL
SELECT format('role %I is no member of role %I, who owns shards, or tables of them', current_user, rolname),
       CASE WHEN rolsuper THEN 'Split the server as a superuser.' ELSE format('GRANT %I TO %I%s;', rolname, current_user,
                  CASE WHEN current_setting('server_version_num')::integer >= 160000 THEN ' WITH INHERIT TRUE' END) END
FROM (SELECT relowner FROM pg_class JOIN shards ON shards.oid = relnamespace WHERE relkind IN ('r', 'p', 'S')
      UNION SELECT nspowner FROM pg_namespace JOIN shards USING (oid)) AS o (owner)
JOIN pg_roles ON pg_roles.oid = owner WHERE NOT pg_has_role(owner, 'USAGE')
UNION ALL
SELECT format('a transaction of process %s in database %I has been running for %s', pid, datname, date_trunc('second', age)),
       format('SELECT pg_terminate_backend(%s); or wait', pid)
FROM pg_stat_activity, LATERAL (SELECT clock_timestamp() - xact_start) AS a (age)
WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() AND datname = current_database() AND backend_xid IS NOT NULL
AND age > make_interval(secs => $2::double precision)
UNION ALL
SELECT format('logical slot %s of database %I would be on this server alone', slot_name, database),
       CASE WHEN starts_with(slot_name, 'snowflake_move_')
            THEN format('End its move first: snowflake-shard list, with database %I, prints the next command', database)
            WHEN slot_name ~ '^pg_[0-9]+_sync_' THEN 'Wait until its subscriber has copied the table'
            ELSE format('SELECT pg_drop_replication_slot(%L); and make one on each server after the split', slot_name) END
FROM pg_replication_slots
WHERE slot_type = 'logical' AND slot_name !~ '^(snowflake_global_|pg_repack_[0-9])' -- the one of REPACK (CONCURRENTLY) ends with it
AND (database <> current_database() OR slot_name ~ '^(snowflake_|pg_[0-9]+_sync_)' AND NOT starts_with(slot_name, 'snowflake_move_'))
UNION ALL
SELECT format('%s has default_transaction_read_only = off, so it could draw IDs on the standby before that is opened', place),
       format('ALTER %s RESET default_transaction_read_only;', place)
FROM pg_db_role_setting CROSS JOIN unnest(setconfig) AS c LEFT JOIN pg_roles AS r ON r.oid = setrole LEFT JOIN pg_database AS d ON d.oid = setdatabase,
     concat_ws(' ', format('ROLE %s', CASE WHEN setrole = 0 THEN 'ALL' ELSE quote_ident(rolname) END), 'IN DATABASE ' || quote_ident(datname)) AS place
WHERE (datname IS NULL OR datname = current_database())
AND CASE WHEN starts_with(c, 'default_transaction_read_only=') THEN NOT split_part(c, '=', 2)::boolean END

-- name: before_closing
-- Rows are obstacles that can also come after the split has begun, while clients write. $1: schemas of the shards.
--
-- Unlogged: the indexes of a table and its TOAST table are as it is, and a partitioned table has no file. Prepared transactions and
-- subscriptions are those of all databases, because the promotion takes the whole cluster along. Outside: partitions and children, also of
-- such ones, in a schema of no shard; find_open_parents() has those in schemas of two shards.
WITH RECURSIVE shards AS (SELECT oid, nspname FROM pg_namespace WHERE nspname = ANY ($1::name[])),
outside (parent, child, nspname) AS (
    SELECT inhparent, inhrelid, nspname
    FROM shards JOIN pg_class AS p ON p.relnamespace = shards.oid JOIN pg_inherits ON inhparent = p.oid JOIN pg_class AS c ON c.oid = inhrelid
    WHERE c.relnamespace NOT IN (SELECT oid FROM shards)
    UNION
    SELECT inhparent, inhrelid, nspname
    FROM outside JOIN pg_inherits ON inhparent = child JOIN pg_class AS c ON c.oid = inhrelid
    WHERE c.relnamespace NOT IN (SELECT oid FROM shards))
SELECT format('%s is unlogged, so it is empty on a standby', c.oid::regclass), snowflake_internal.told_to(relowner,
       format('ALTER %s %s SET LOGGED;', CASE relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, c.oid::regclass))
FROM pg_class AS c JOIN shards ON shards.oid = relnamespace WHERE relkind IN ('r', 'S') AND relpersistence = 'u'
UNION ALL
SELECT format('table %s %s table %s, and is in no shard, so it would be open on both servers', child::regclass,
              CASE WHEN relispartition THEN 'is a partition of' ELSE 'inherits from' END, parent::regclass),
       format('ALTER TABLE %s SET SCHEMA %I;', child::regclass, nspname)
FROM outside JOIN pg_class AS c ON c.oid = child WHERE relkind IN ('r', 'p')
UNION ALL
SELECT format('transaction %L of database %I is prepared, and would be prepared on both servers', gid, database),
       format('ROLLBACK PREPARED %L; or COMMIT PREPARED', gid)
FROM pg_prepared_xacts
UNION ALL
SELECT format('subscription %I of database %I would be on both servers', subname, datname),
       format('ALTER SUBSCRIPTION %I DISABLE; in database %I. After the split, %s', subname, datname,
              CASE WHEN starts_with(subname, 'snowflake_global_') THEN 'snowflake-shard global add gives the new server a slot of its own'
                   ELSE 'pg_copy_logical_replication_slot() makes a slot for the new server' END)
FROM pg_subscription JOIN pg_database AS d ON d.oid = subdbid WHERE subenabled

-- name: on_standby
-- $1: the system identifier, $2: the database's OID, $3: the timeline of the old server, $4: how many logical slots it is to get, $5: the
-- role of the connection to the old server, to which the record of the split belongs.
--
-- One that is not in recovery has no receiver, so HAVING leaves it out. reset_val, because this session has set the parameter itself. The
-- rights are in the catalogs that came by the WAL, so the GRANT is for the server of --from. has_parameter_privilege() is there from
-- PostgreSQL 15 on, the oldest version of the extension.
SELECT 'it is no standby of the server: its system identifier is ' || system_identifier || ', not ' || $1::text,
       'Give the standby of the server of --from as --standby; pg_basebackup makes one.'
FROM pg_control_system() WHERE system_identifier::text <> $1
UNION ALL
SELECT 'it is another database: ' || current_database(), 'Give the same dbname in --from and --standby.'
FROM pg_database WHERE datname = current_database() AND oid::text <> $2
UNION ALL
SELECT 'it is no standby: it is not in recovery', 'Give a server that follows that of --from as --standby.'
WHERE NOT pg_is_in_recovery()
UNION ALL
SELECT 'it does not stream WAL: pg_stat_wal_receiver has ' || coalesce(max(format('status %s on timeline %s', status, received_tli)), 'no row'),
       'Its log says why; look at primary_conninfo.'
FROM pg_stat_wal_receiver
HAVING pg_is_in_recovery() AND pg_has_role('pg_read_all_stats', 'USAGE') AND count(*) FILTER (WHERE status = 'streaming' AND received_tli::text = $3) = 0
UNION ALL
SELECT format('max_replication_slots = %s, and %s are in use: it is to have %s more', most, used, $4::integer),
       format('ALTER SYSTEM SET max_replication_slots = %s; and restart it', used + $4::integer)
FROM current_setting('max_replication_slots') AS most, (SELECT count(*) FROM pg_replication_slots) AS s (used)
WHERE $4::integer > 0 AND most::integer < used + $4::integer
UNION ALL
SELECT 'default_transaction_read_only = on: it could not be written to after the promotion', 'ALTER SYSTEM RESET default_transaction_read_only; or remove it from postgresql.conf, and SELECT pg_reload_conf();'
FROM pg_settings WHERE name = 'default_transaction_read_only' AND reset_val = 'on'
UNION ALL
SELECT format('role %I may not call %s', current_user, f), format('GRANT EXECUTE ON FUNCTION %s TO %I; on the server of --from', f, current_user)
FROM unnest('{pg_promote(boolean\, integer),pg_reload_conf()}'::text[]) AS f WHERE NOT has_function_privilege('pg_catalog.' || f, 'EXECUTE')
UNION ALL
SELECT format('role %I has not the rights of role %I, of --from, so it could not open the shards after the promotion', current_user, rolname),
       format('Connect to the standby as role %I, too.', rolname)
FROM pg_roles AS r
WHERE rolname = $5 AND rolname <> current_user
AND NOT (pg_has_role(oid, 'USAGE') AND (NOT rolsuper OR (SELECT rolsuper FROM pg_roles WHERE rolname = current_user)))
UNION ALL
SELECT format('role %I may not set default_transaction_read_only by ALTER SYSTEM', current_user),
       format('GRANT ALTER SYSTEM ON PARAMETER default_transaction_read_only TO %I; on the server of --from', current_user)
WHERE NOT has_parameter_privilege('default_transaction_read_only', 'ALTER SYSTEM')

-- name: without_standby
-- Waits of the old server for the standby, which is in pg_stat_replication no more when it is promoted. $1: the name by which it is known
-- there, $2: its slot; empty: none. If fewer others are left than synchronous_standby_names wants, every COMMIT waits. The number before
-- the parenthesis is how many; a list without it wants one. synchronized_standby_slots is there from PostgreSQL 17 on.
SELECT format('synchronous_standby_names = ''%s'' wants the standby %s: commits would wait for ever when it is promoted', names, $1::text),
       'ALTER SYSTEM SET synchronous_standby_names = ...; without it, and SELECT pg_reload_conf();'
FROM current_setting('synchronous_standby_names') AS names
WHERE EXISTS (SELECT FROM pg_stat_replication WHERE sync_state <> 'async' AND application_name = $1)
AND (SELECT count(*) FROM pg_stat_replication WHERE sync_state <> 'async' AND application_name <> $1)
    < coalesce(substring(names, '^\s*(?:(?:FIRST|ANY|first|any)\s+)?(\d+)\s*\(')::integer, 1)
UNION ALL
SELECT format('synchronized_standby_slots = %L has slot %s of the standby: logical replication would wait for ever when it is promoted',
              setting, $2::text),
       format('ALTER SYSTEM SET synchronized_standby_slots = %L; and SELECT pg_reload_conf();', others)
FROM pg_settings,
LATERAL (SELECT coalesce(string_agg(name[1], ', ' ORDER BY n) FILTER (WHERE name[1] <> $2), ''), bool_or(name[1] = $2)
         FROM regexp_matches(setting, '\w+', 'g') WITH ORDINALITY AS m (name, n)) AS s (others, is_there)
WHERE name = 'synchronized_standby_slots' AND is_there

-- name: at_promotion
-- Settings of the standby, which are often those of a base backup. Its followers are not synchronous before the promotion (sync_state), so
-- their names are compared, as the server does it: without case, and * is any. An empty value by ALTER SYSTEM takes precedence over
-- postgresql.conf, where RESET would not. pg_is_wal_replay_paused() would be an error on a server that is not in recovery.
SELECT format('synchronous_standby_names = %L, and %s of %s such standbys follow it: each COMMIT would wait after the promotion', setting, there, needed),
       'ALTER SYSTEM SET synchronous_standby_names = ''''; SELECT pg_reload_conf();'
FROM pg_settings,
LATERAL (SELECT coalesce(substring(lower(setting) FROM '^\s*(?:first|any)?\s*(\d+)\s*\(')::integer, 1),
                ARRAY(SELECT lower(replace(trim(both '"' FROM name[1]), '""', '"'))
                      FROM regexp_matches(regexp_replace(setting, '^[^"(]*\((.*)\)\s*$', '\1'), '"(?:[^"]|"")*"|[^\s,"]+', 'g') AS m (name))) AS n (needed, names),
LATERAL (SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND ('*' = ANY (names) OR lower(application_name) = ANY (names))) AS t (there)
WHERE name = 'synchronous_standby_names' AND setting <> '' AND there < needed AND pg_has_role('pg_read_all_stats', 'USAGE')
UNION ALL
SELECT format('synchronized_standby_slots = %L, and it has no slot %s: logical replication from it would wait for ever after the promotion', setting, missing),
       format('ALTER SYSTEM SET synchronized_standby_slots = %L; SELECT pg_reload_conf();', coalesce(there, ''))
FROM pg_settings,
LATERAL (SELECT string_agg(name[1], ', ' ORDER BY n) FILTER (WHERE slot_name IS NULL), string_agg(name[1], ', ' ORDER BY n) FILTER (WHERE slot_name IS NOT NULL)
         FROM regexp_matches(setting, '\w+', 'g') WITH ORDINALITY AS m (name, n)
         LEFT JOIN pg_replication_slots ON slot_name = name[1] AND slot_type = 'physical') AS s (missing, there)
WHERE name = 'synchronized_standby_slots' AND missing IS NOT NULL
UNION ALL
SELECT 'recovery_min_apply_delay = ' || current_setting('recovery_min_apply_delay'), 'ALTER SYSTEM RESET recovery_min_apply_delay; SELECT pg_reload_conf();'
WHERE current_setting('recovery_min_apply_delay') <> '0'
UNION ALL
SELECT 'its replay is paused', 'SELECT pg_wal_replay_resume();'
WHERE CASE WHEN pg_is_in_recovery() THEN pg_is_wal_replay_paused() END
