-- name: kept_extension
-- One row: keep_extension() and a relation of the extension, which only a superuser or this role could change; and why a function of
-- snowflake_internal could be one of another role. If none is, other roles can only drop the extension.
WITH trusted AS (SELECT oid FROM pg_roles WHERE rolsuper OR rolname = current_user),
members AS (
    SELECT e.oid AS extension, classid, objid FROM pg_extension AS e
    JOIN pg_depend ON refclassid = 'pg_extension'::regclass AND refobjid = e.oid AND deptype = 'e' WHERE extname = 'snowflake'),
internal AS (SELECT oid, nspowner, nspacl FROM pg_namespace WHERE nspname = 'snowflake_internal'),
functions AS (
    SELECT p.oid, proowner, prokind, prosrc, probin, lanname, EXISTS (
        SELECT FROM members WHERE classid = 'pg_proc'::regclass AND objid = p.oid) AS is_member
    FROM internal AS n JOIN pg_proc AS p ON pronamespace = n.oid JOIN pg_language AS l ON l.oid = prolang),
problems (problem, hint) AS (
    SELECT format('schema snowflake_internal belongs to role %I', pg_get_userbyid(nspowner)),
           'ALTER SCHEMA snowflake_internal OWNER TO CURRENT_USER; as a superuser.'
    FROM internal WHERE nspowner NOT IN (TABLE trusted)
    UNION ALL
    SELECT 'schema snowflake_internal is not of the extension', NULL
    FROM internal AS n WHERE NOT EXISTS (SELECT FROM members WHERE classid = 'pg_namespace'::regclass AND objid = n.oid)
    UNION ALL
    SELECT CASE grantee WHEN 0 THEN 'every role' ELSE format('role %I', pg_get_userbyid(grantee)) END
           || ' may create functions in schema snowflake_internal',
           format('REVOKE CREATE ON SCHEMA snowflake_internal FROM %s;',
                  CASE grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END)
    FROM internal CROSS JOIN aclexplode(nspacl) WHERE privilege_type = 'CREATE' AND grantee NOT IN (TABLE trusted)
    UNION ALL
    SELECT format('function %s %s', oid::regprocedure, CASE
                  WHEN proowner IN (TABLE trusted) THEN 'is not of the extension'
                  ELSE format('belongs to role %I', pg_get_userbyid(proowner)) END),
           CASE WHEN is_member THEN format('ALTER ROUTINE %s OWNER TO CURRENT_USER; as a superuser.', oid::regprocedure)
           ELSE format('DROP ROUTINE %s;', oid::regprocedure) END
    FROM functions WHERE NOT is_member OR proowner NOT IN (TABLE trusted))
SELECT (SELECT oid FROM functions
        WHERE is_member AND proowner IN (TABLE trusted) AND lanname = 'c' AND prosrc = 'snowflake_keep_extension'
            AND probin ~ '(^|/)snowflake$'),
       (SELECT min(c.oid) FROM members JOIN pg_class AS c ON classid = 'pg_class'::regclass AND c.oid = objid
        WHERE relowner IN (TABLE trusted) AND relkind = 'v'),
       problem, hint
FROM (SELECT) AS one LEFT JOIN (SELECT problem, hint FROM problems ORDER BY problem LIMIT 1) AS p ON true
