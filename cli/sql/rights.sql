-- name: owners
-- The roles that own the shard and its objects, each with one of these for the hint. By name, because a role has another OID on the
-- subscriber. A role that is missing there is found by needed. The owner of the database is the only member of
-- pg_database_owner, which owns schema public.
SELECT coalesce(array_agg(rolname), '{}'), coalesce(array_agg(object), '{}') FROM (
    SELECT rolname, min(pg_describe_object(class, object, 0)) AS object FROM (
        SELECT CASE nspowner WHEN 'pg_database_owner'::regrole THEN datdba ELSE nspowner END, 'pg_namespace'::regclass, n.oid
        FROM pg_namespace AS n JOIN pg_database ON datname = current_database() WHERE n.oid = ANY ($1::regnamespace[])
        UNION SELECT relowner, 'pg_class'::regclass, oid FROM pg_class WHERE relnamespace = ANY ($1::regnamespace[])
        UNION SELECT stxowner, 'pg_statistic_ext'::regclass, oid FROM pg_statistic_ext WHERE stxnamespace = ANY ($1::regnamespace[])
        UNION SELECT proowner, 'pg_proc'::regclass, oid FROM pg_proc WHERE pronamespace = ANY ($1::regnamespace[])
        UNION SELECT typowner, 'pg_type'::regclass, oid FROM pg_type WHERE typnamespace = ANY ($1::regnamespace[])) AS o (owner, class, object)
    JOIN pg_roles ON pg_roles.oid = owner GROUP BY rolname) AS owners

-- name: not_as_owner
-- The worker of a table whose owner lacks a right would fail as that owner, and so it does under forced row security
-- (TargetPrivilegesCheck()): the reason, and the statement that mends it.
SELECT reason, statement
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = relnamespace CROSS JOIN quote_ident(pg_get_userbyid(relowner)) AS owner,
LATERAL (SELECT string_agg(privilege, ', ') FROM unnest('{SELECT,INSERT,UPDATE,DELETE,TRUNCATE}'::text[]) AS privilege
         WHERE NOT has_table_privilege(relowner, c.oid, privilege)) AS p (missing),
LATERAL (SELECT format('row security is forced on table %s', c.oid::regclass),
                format('ALTER TABLE %s NO FORCE ROW LEVEL SECURITY;', c.oid::regclass)
         WHERE relrowsecurity AND relforcerowsecurity
         UNION ALL
         SELECT format('the owner of table %s may not use its schema', c.oid::regclass), format('GRANT USAGE ON SCHEMA %I TO %s;', nspname, owner)
         WHERE NOT has_schema_privilege(relowner, n.oid, 'USAGE')
         UNION ALL
         SELECT format('the owner of table %s lacks %s on it', c.oid::regclass, missing), format('GRANT %s ON %s TO %s;', missing, c.oid::regclass, owner)
         WHERE missing IS NOT NULL) AS r (reason, statement)
WHERE relnamespace = ANY ($1::regnamespace[]) AND relkind = 'r' ORDER BY c.oid::regclass::text LIMIT 1

-- name: table_owners
-- The owners of the tables of the schemas $1.
SELECT coalesce(array_agg(DISTINCT rolname), '{}') FROM pg_class JOIN pg_roles AS r ON r.oid = relowner
WHERE relnamespace = ANY ($1::regnamespace[]) AND relkind IN ('r', 'p')

-- name: session_problems
-- Why there can be no session of one of the roles $1. A role that is missing, and one as which the current role may not act, are other
-- obstacles.
SELECT p.problem, p.hint FROM pg_roles AS r CROSS JOIN LATERAL snowflake_internal.session_problem_of(r.oid) AS p
WHERE rolname = ANY ($1::name[]) AND p.problem IS NOT NULL
AND (pg_has_role(r.oid, 'MEMBER') AND NOT rolsuper OR current_setting('is_superuser')::boolean)

-- name: subscription_rights
-- Rights that this role lacks from PostgreSQL 16 on. The worker may write the rows as this role, so that one has to inherit the rights of
-- the owners (USAGE), too. SET is the right that ALTER ... OWNER TO asks for since 16. Membership in a superuser would give away the whole
-- server, so the hint never grants it.
SELECT format('role %I may not make a subscription', current_user),
       format('GRANT pg_create_subscription TO %I;', current_user)
WHERE NOT pg_has_role('pg_create_subscription', 'USAGE')
UNION ALL
SELECT format('role %I may make no schema in database %I', current_user, current_database()),
       format('GRANT CREATE ON DATABASE %I TO %I;', current_database(), current_user)
WHERE NOT has_database_privilege(current_database(), 'CREATE')
UNION ALL
SELECT format('role %I may not make objects of role %I, and write to them', current_user, rolname),
       CASE WHEN rolsuper THEN format('Connect as a superuser. Or give %s, and the other objects of role %I, to a role that is no superuser.', object, rolname)
            ELSE format('GRANT %I TO %I WITH INHERIT TRUE, SET TRUE;', rolname, current_user) END
FROM unnest($1::name[], $2::text[]) AS o (rolname, object) JOIN pg_roles USING (rolname)
WHERE NOT (pg_has_role(oid, 'USAGE') AND pg_has_role(oid, 'SET'))

-- name: rights_to_read
-- The remedy where the current role cannot read tables, their children and partitions, or sequences; NULL if it is something else. $1: OIDs;
-- $2: all rows are to be read. No policy can help: one that applies to the role may hide rows, whatever it says.
WITH RECURSIVE tables (tbl) AS (
    SELECT unnest($1::oid[])
    UNION
    SELECT inhrelid FROM pg_inherits JOIN tables ON inhparent = tbl)
SELECT string_agg(remedy, ' ' ORDER BY remedy)
FROM (SELECT DISTINCT CASE place WHEN 1 THEN format('GRANT USAGE ON SCHEMA %I TO %I;', nspname, current_user)
                                 WHEN 2 THEN format('GRANT SELECT ON %s TO %I;', c.oid::regclass, current_user)
                                 WHEN 3 THEN format('Run it as %sa role with BYPASSRLS, to read all rows of %s.',
                                                    CASE WHEN NOT relforcerowsecurity
                                                         THEN format('role %I, the owner, or as ', pg_get_userbyid(relowner)) END,
                                                    c.oid::regclass) END
      FROM tables JOIN pg_class AS c ON c.oid = tbl
      JOIN pg_namespace AS n ON n.oid = relnamespace
      CROSS JOIN LATERAL (VALUES (1, NOT has_schema_privilege(n.oid, 'USAGE')), (2, NOT has_table_privilege(c.oid, 'SELECT')),
                                 (3, $2 AND row_security_active(c.oid))) AS v (place, is_missing)
      WHERE is_missing) AS r (remedy)
