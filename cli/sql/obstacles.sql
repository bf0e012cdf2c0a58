-- name: too_few
-- The problem, and the statement that mends it. $1, $3, $5: how many slots, workers of subscriptions and background workers are taken; $2, $4,
-- $6: by what. $7: a session of an owner that began later does not count.
--
-- Workers of parallel queries come and go, and are not counted. A background worker shows the type that its library gives it (bgw_type), so
-- the query names the processes that take none of max_worker_processes. A subscription has a replication origin; before PostgreSQL 18
-- max_replication_slots limits these, too.
SELECT format('%s = %s, and %s are in use: %s', name, setting, used, takes),
       format('ALTER SYSTEM SET %s = %s; and restart the server', name, used + needed + 2)
FROM (VALUES ('max_replication_slots', (SELECT count(*) FROM pg_replication_slots), $1::bigint, $2),
             ('max_wal_senders', (SELECT count(*) FROM pg_stat_replication), $1::bigint, $2),
             ('max_logical_replication_workers', (SELECT count(pid) FROM pg_stat_subscription), $3::bigint, $4),
             ('max_worker_processes', (SELECT count(*) FROM pg_stat_activity
                                       WHERE backend_type !~ '^(client backend|walsender|walwriter|walreceiver|archiver|parallel worker'
                                                             '|checkpointer|background writer|autovacuum .*|startup|io worker'
                                                             '|walsummarizer|slotsync worker)$'
                                       AND (backend_type <> 'snowflake session' OR backend_start < $7::timestamptz)), $5::bigint, $6),
             (CASE WHEN current_setting('max_active_replication_origins', true) IS NULL THEN 'max_replication_slots'
                   ELSE 'max_active_replication_origins' END,
              (SELECT count(*) FROM pg_replication_origin), $3::bigint, $4)) AS u (name, used, needed, takes)
CROSS JOIN current_setting(name) AS setting WHERE needed > 0 AND setting::bigint < used + needed
ORDER BY name, used + needed

-- name: written_expressions
-- Expressions that rows pass when they are written, with functions whose body is text: their names are looked up when they run. The copy
-- and the apply worker have an empty search_path. A body that was parsed by CREATE FUNCTION has none of these names.
WITH written AS (
    SELECT adrelid AS tbl, d.tableoid AS class, d.oid AS object, format('generated column %s.%I', adrelid::regclass, attname) AS title,
           pg_get_expr(adbin, adrelid) AS expression
    FROM pg_attrdef AS d JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum WHERE attgenerated <> ''
    UNION ALL
    SELECT indrelid, 'pg_class'::regclass, indexrelid, format('index %s', indexrelid::regclass),
           concat_ws(', ', pg_get_expr(indexprs, indrelid), pg_get_expr(indpred, indrelid))
    FROM pg_index WHERE indexprs IS NOT NULL OR indpred IS NOT NULL
    UNION ALL
    SELECT conrelid, tableoid, oid, format('constraint %I of table %s', conname, conrelid::regclass), pg_get_expr(conbin, conrelid)
    FROM pg_constraint WHERE contype = 'c' AND conrelid <> 0
)
SELECT tbl, title, format('SELECT count(ROW(%s)::text)::text FROM (SELECT * FROM ONLY %s LIMIT 100) AS t', expression, tbl::regclass),
       format('ALTER FUNCTION %s SET search_path = %I;', min(p.oid::regprocedure::text), nspname)
FROM written JOIN pg_class AS c ON c.oid = tbl JOIN pg_namespace AS n ON n.oid = relnamespace
JOIN pg_depend AS d ON d.classid = class AND d.objid = object AND refclassid = 'pg_proc'::regclass
JOIN pg_proc AS p ON p.oid = refobjid JOIN pg_language AS l ON l.oid = prolang
WHERE relnamespace = ANY ($1::regnamespace[]) AND relkind = 'r' AND lanname NOT IN ('internal', 'c') AND prosqlbody IS NULL
GROUP BY tbl, title, expression, nspname
ORDER BY tbl, title

-- name: on_target
-- The definition calls the functions of the extension by their schema, so that must be the same; and it may call functions that an earlier
-- version does not have. max() returns a row also where the extension is missing. $2, $3: version and schema on the source.
SELECT format('extension snowflake is %s, and on the source it is %s in schema %s', there, $2::text, $3::text),
       format('CREATE EXTENSION snowflake SCHEMA %1$s; or ALTER EXTENSION snowflake UPDATE; to have it in schema %1$s, use another database', $3::text)
FROM (SELECT coalesce(max(format('%s in schema %s', extversion, extnamespace::regnamespace)), 'missing'),
             bool_and(string_to_array(extversion, '.')::integer[] >= string_to_array($2, '.')::integer[]
                      AND extnamespace::regnamespace::text = $3)
      FROM pg_extension WHERE extname = 'snowflake') AS e (there, fits)
WHERE fits IS NOT TRUE
UNION ALL
SELECT format('role %I may not copy rows', current_user), format('GRANT EXECUTE ON FUNCTION %s TO %I;', p.oid::regprocedure, current_user)
FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = pronamespace
WHERE nspname = 'snowflake_internal' AND proname = 'copy_rows' AND NOT has_function_privilege(p.oid, 'EXECUTE')
UNION ALL
SELECT format('schema %I is there already', nspname),
       CASE WHEN EXISTS (SELECT FROM pg_depend WHERE refclassid = 'pg_namespace'::regclass AND refobjid = pg_namespace.oid)
            THEN format('It is not of a move. Decide by SELECT relname, reltuples FROM pg_class WHERE relnamespace = %L::regnamespace;',
                        quote_ident(nspname))
            ELSE format('It is empty: DROP SCHEMA %I;', nspname) END
FROM pg_namespace WHERE nspname = ANY ($1::name[])

-- name: money_columns
-- A column of the schemas $1 whose values are money, or hold money.
WITH RECURSIVE moneys (typ) AS (
    SELECT 'money'::regtype::oid
    UNION
    SELECT t.oid FROM moneys AS m JOIN (
        SELECT oid, typbasetype FROM pg_type WHERE typbasetype <> 0
        UNION ALL SELECT oid, typelem FROM pg_type WHERE typelem <> 0
        UNION ALL SELECT rngtypid, rngsubtype FROM pg_range
        UNION ALL SELECT rngmultitypid, rngsubtype FROM pg_range
        UNION ALL SELECT reltype, atttypid FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid
                  WHERE relkind = 'c' AND NOT attisdropped) AS t (oid, part) ON t.part = m.typ)
SELECT format('%s.%I', c.oid::regclass, attname)
FROM pg_class AS c JOIN pg_attribute ON attrelid = c.oid AND attnum > 0 AND NOT attisdropped JOIN moneys ON typ = atttypid
WHERE relnamespace = ANY ($1::regnamespace[]) AND relkind IN ('r', 'p')
ORDER BY 1 LIMIT 1

-- name: settings_of_worker
-- Settings of the role and the database by which the apply worker would read other values than those that were sent. $1: lc_monetary of the
-- publisher, $2: a column of money; empty: none.
SELECT format('array_nulls is off for role %I: its apply worker would make the text NULL of a NULL in an array', current_user),
       format('ALTER ROLE %I IN DATABASE %I SET array_nulls = on;', current_user, current_database())
WHERE current_setting('array_nulls') = 'off'
UNION ALL
SELECT format('lc_monetary is %L for role %I, and %L on the other server: its apply worker would read other amounts in column %s',
              current_setting('lc_monetary'), current_user, $1::text, $2::text),
       format('ALTER ROLE %I IN DATABASE %I SET lc_monetary = %L;', current_user, current_database(), $1)
WHERE $2 <> '' AND current_setting('lc_monetary') <> $1

-- name: default_privileges
-- pg_dump writes the privileges that differ from PostgreSQL's defaults, so other defaults of the target would be added to them. Only those
-- without a schema count, because that of the shard does not exist yet; and only those of the owners of the schemas, $1, who make the objects.
-- acldefault() takes 'S' for a foreign server and 's' for a sequence, which pg_default_acl has as 'S'.
SELECT DISTINCT format('new %s of role %I %s %s %s by default, and so would those of the shard', kind, pg_get_userbyid(defaclrole),
                       CASE verb WHEN 'REVOKE' THEN 'give' ELSE 'refuse' END, who, privilege),
       format('ALTER DEFAULT PRIVILEGES FOR ROLE %I %s %s ON %s %s %s;', pg_get_userbyid(defaclrole), verb, privilege, upper(kind),
              CASE verb WHEN 'REVOKE' THEN 'FROM' ELSE 'TO' END, who)
FROM pg_default_acl AS d,
LATERAL (SELECT acldefault(CASE defaclobjtype WHEN 'S' THEN 's' ELSE defaclobjtype END, defaclrole)) AS b (acl),
LATERAL ((SELECT 'REVOKE', grantee, privilege_type FROM aclexplode(defaclacl)
          EXCEPT SELECT 'REVOKE', grantee, privilege_type FROM aclexplode(acl))
         UNION ALL
         (SELECT 'GRANT', grantee, privilege_type FROM aclexplode(acl)
          EXCEPT SELECT 'GRANT', grantee, privilege_type FROM aclexplode(defaclacl))) AS x (verb, grantee, privilege),
LATERAL (SELECT CASE defaclobjtype WHEN 'r' THEN 'tables' WHEN 'S' THEN 'sequences' WHEN 'f' THEN 'functions'
                                   WHEN 'T' THEN 'types' WHEN 'n' THEN 'schemas' END,
                CASE grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END) AS w (kind, who)
WHERE defaclnamespace = 0 AND kind IS NOT NULL
AND defaclrole IN (SELECT CASE r.oid WHEN 'pg_database_owner'::regrole THEN datdba ELSE r.oid END
                   FROM pg_roles AS r JOIN pg_database ON datname = current_database() WHERE rolname = ANY ($1::name[]))

-- name: other_readers
-- Publications that have the shard's tables, and slots whose readers get their changes. On a server without the schema only FOR ALL TABLES
-- counts. Other plugins know no publications. The slots of a table's copy belong to a subscription that has a slot of its own. From 19 on
-- REPACK (CONCURRENTLY) has a slot, pg_repack_PID, while it runs.
WITH publications AS (
    SELECT pubname FROM pg_publication AS p
    WHERE pubname !~ '^snowflake_(move_|global)'
    AND (puballtables
         OR EXISTS (SELECT FROM pg_publication_namespace WHERE pnpubid = p.oid AND pnnspid = ANY (ARRAY(SELECT to_regnamespace(name) FROM unnest($1::text[]) AS name)))
         OR EXISTS (SELECT FROM pg_publication_rel JOIN pg_class AS c ON c.oid = prrelid
                    WHERE prpubid = p.oid AND relnamespace = ANY (ARRAY(SELECT to_regnamespace(name) FROM unnest($1::text[]) AS name))))
), readers AS (
    SELECT 1, 'publication ' || quote_ident(pubname) FROM publications
    UNION ALL
    SELECT 2, 'slot ' || slot_name FROM pg_replication_slots
    WHERE slot_type = 'logical' AND database = current_database() AND slot_name !~ '^(snowflake_(move_|global)|pg_[0-9]+_sync_|pg_repack_[0-9])'
    AND (plugin <> 'pgoutput' OR EXISTS (TABLE publications))
)
SELECT string_agg(name, ', ' ORDER BY kind, name) FROM readers AS r (kind, name) HAVING count(*) > 0
