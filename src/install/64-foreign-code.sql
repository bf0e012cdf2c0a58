-- Why SQL must not run in a superuser's schema, where it has the rights of a superuser, and the statement that ends that; NULL if it may, and
-- for other schemas. Another role could run code there if it owns an object in the schema, one on a relation of it (a trigger, a rule, a child
-- table), or one that any of these uses; or if it may make such an object. tbl: the same of a table alone, which is only read; schema is 0.
CREATE FUNCTION snowflake_internal.foreign_code(schema oid, tbl oid DEFAULT 0, OUT problem text, OUT hint text)
    -- PL/pgSQL keeps a generic plan: planning takes ten times the rest, and the command asks for each statement in each shard.
    LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
BEGIN
WITH RECURSIVE superusers AS (
    -- The owner of the database stands for pg_database_owner, its only member.
    SELECT r.oid FROM pg_roles AS r JOIN pg_database AS d ON d.datname = current_database()
    JOIN pg_roles AS a ON a.oid = CASE r.oid WHEN 'pg_database_owner'::regrole THEN d.datdba ELSE r.oid END
    WHERE a.rolsuper),
contents (classid, objid) AS (
    (SELECT classid, objid FROM pg_depend WHERE refclassid = 'pg_namespace'::regclass AND refobjid = $1
     UNION ALL SELECT 'pg_class'::regclass, $2 WHERE $2 <> 0)
    UNION -- parts of a relation, its children, and keys to it; not a view or a function that only reads it
    SELECT d.classid, d.objid FROM contents AS c JOIN pg_depend AS d ON (d.refclassid, d.refobjid) = (c.classid, c.objid)
    WHERE c.classid = 'pg_class'::regclass AND (d.deptype <> 'n' OR d.classid IN ('pg_class'::regclass, 'pg_constraint'::regclass))),
used (classid, objid) AS (
    TABLE contents
    UNION
    SELECT d.refclassid, d.refobjid FROM used AS u JOIN pg_depend AS d ON (d.classid, d.objid) = (u.classid, u.objid)
    WHERE d.refclassid <> 'pg_namespace'::regclass AND d.deptype <> 'e'),
others (role, does, revoked) AS (
    SELECT s.refobjid, 'owns ' || pg_describe_object(u.classid, u.objid, 0), NULL
    FROM used AS u
    JOIN pg_shdepend AS s ON (s.classid, s.objid) = (u.classid, u.objid) AND s.deptype = 'o'
        AND s.dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
    UNION ALL
    SELECT grantee, 'may create objects in it', format('CREATE ON SCHEMA %I', nspname)
    FROM pg_namespace AS n CROSS JOIN aclexplode(nspacl) WHERE n.oid = $1 AND privilege_type = 'CREATE'
    UNION ALL
    SELECT grantee, format('has %s on %s', privilege_type, pg_describe_object('pg_class'::regclass, t.oid, 0)),
           format('TRIGGER, REFERENCES ON ALL TABLES IN SCHEMA %s', t.relnamespace::regnamespace) -- of their columns, too
    FROM contents JOIN pg_class AS t ON classid = 'pg_class'::regclass AND t.oid = objid
    CROSS JOIN LATERAL (SELECT relacl UNION ALL SELECT attacl FROM pg_attribute WHERE attrelid = t.oid) AS a (acl)
    CROSS JOIN aclexplode(acl) WHERE privilege_type IN ('TRIGGER', 'REFERENCES') AND $2 = 0),
objects (kind, name, role) AS (
    SELECT 'SCHEMA', quote_ident(nspname), CASE nspowner WHEN 'pg_database_owner'::regrole THEN datdba ELSE nspowner END
    FROM pg_namespace AS n JOIN pg_database ON datname = current_database() WHERE n.oid = $1
    UNION ALL
    SELECT 'TABLE', oid::regclass::text, relowner FROM pg_class WHERE oid = $2)
SELECT format('%s %s belongs to superuser %I, and %s %s: code of that role would run with the rights of a superuser',
              lower(s.kind), s.name, pg_get_userbyid(s.role),
              CASE o.role WHEN 0 THEN 'every role' ELSE format('role %I', pg_get_userbyid(o.role)) END, o.does),
       coalesce('REVOKE ' || o.revoked || ' FROM '
                || CASE o.role WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(o.role)) END || '; Or: ', '')
       || format('ALTER %s %s OWNER TO ...; %s to a role that is no superuser.', s.kind, s.name,
                 CASE $2 WHEN 0 THEN 'and the same of its objects gives the shard' ELSE 'gives the table' END)
INTO problem, hint
FROM others AS o, objects AS s
WHERE s.role IN (TABLE superusers) AND o.role NOT IN (TABLE superusers)
ORDER BY o.does LIMIT 1;
END;
$$;
