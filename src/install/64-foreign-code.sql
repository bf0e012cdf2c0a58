-- In a superuser's schema the command works with the rights of a superuser.
-- How code of a role that is no superuser could run with the rights of this session in a superuser's schema, and the
-- statement that ends it; NULL if not. writes: also by writes.
CREATE FUNCTION snowflake_internal.foreign_code(schema oid, writes boolean, OUT problem text, OUT hint text)
    -- PL/pgSQL keeps a generic plan; planning takes ten times the rest, and the command asks for each statement in each shard.
    LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
BEGIN
WITH RECURSIVE superusers AS (
    -- The owner of the database stands for pg_database_owner, its only member.
    SELECT r.oid, r.rolname FROM pg_roles AS r JOIN pg_database AS d ON d.datname = current_database()
    JOIN pg_roles AS a ON a.oid = CASE r.oid WHEN 'pg_database_owner'::regrole THEN d.datdba ELSE r.oid END
    WHERE a.rolsuper),
superusers_schema AS (
    SELECT n.oid, nspname, nspacl, rolname FROM pg_namespace AS n JOIN superusers AS s ON s.oid = nspowner WHERE n.oid = $1),
contents AS (
    SELECT classid, objid FROM pg_depend JOIN superusers_schema AS n ON n.oid = refobjid
    WHERE refclassid = 'pg_namespace'::regclass),
tables AS (
    SELECT c.oid, relnamespace, relowner, relkind, relacl FROM contents JOIN pg_class AS c ON c.oid = objid
    WHERE classid = 'pg_class'::regclass
    UNION -- SQL that names a table reads and changes its children, too
    SELECT c.oid, c.relnamespace, c.relowner, c.relkind, c.relacl
    FROM tables JOIN pg_inherits ON inhparent = tables.oid JOIN pg_class AS c ON c.oid = inhrelid),
-- An ordinary table of another role is no reason: SQL that names it runs its triggers, as any query of that table does.
owned (owner, object) AS (
    SELECT relowner, pg_describe_object('pg_class'::regclass, oid, 0) FROM tables WHERE relkind IN ('v', 'm', 'f')
    OR EXISTS (SELECT FROM pg_inherits JOIN pg_class AS p ON p.oid = inhparent WHERE inhrelid = tables.oid AND p.relowner <> tables.relowner)
    UNION ALL
    SELECT coalesce(proowner, oprowner, typowner), pg_describe_object(classid, objid, 0) FROM contents
    LEFT JOIN pg_proc AS p ON classid = 'pg_proc'::regclass AND p.oid = objid
    LEFT JOIN pg_operator AS o ON classid = 'pg_operator'::regclass AND o.oid = objid
    LEFT JOIN pg_type AS t ON classid = 'pg_type'::regclass AND t.oid = objid AND typtype = 'd'),
privileges (grantee, does, revoked) AS (
    SELECT grantee, 'may create objects in it', format('CREATE ON SCHEMA %I', nspname)
    FROM superusers_schema CROSS JOIN aclexplode(nspacl) WHERE privilege_type = 'CREATE'
    UNION ALL
    -- A cascade of a foreign key fires triggers of the table that refers.
    SELECT grantee, format('may make %s %s', CASE privilege_type WHEN 'TRIGGER' THEN 'triggers on' ELSE 'keys to' END,
                           pg_describe_object('pg_class'::regclass, tables.oid, 0)),
           format('TRIGGER, REFERENCES ON ALL TABLES IN SCHEMA %s', relnamespace::regnamespace) -- of their columns, too
    FROM tables CROSS JOIN LATERAL (SELECT relacl UNION ALL SELECT attacl FROM pg_attribute WHERE attrelid = tables.oid) AS a (acl)
    CROSS JOIN aclexplode(acl) WHERE writes AND relkind <> 'S' AND privilege_type IN ('TRIGGER', 'REFERENCES')),
fired (owner, object) AS (
    SELECT proowner, pg_describe_object('pg_trigger'::regclass, g.oid, 0)
    FROM tables JOIN pg_trigger AS g ON tgrelid = tables.oid JOIN pg_proc AS p ON p.oid = tgfoid WHERE writes
    UNION ALL
    SELECT c.relowner, pg_describe_object('pg_class'::regclass, c.oid, 0) || ', which refers to it'
    FROM tables JOIN pg_trigger AS g ON tgrelid = tables.oid JOIN pg_class AS c ON c.oid = tgconstrrelid WHERE writes),
reasons (text, hint) AS (
    SELECT format('%s %s', CASE grantee WHEN 0 THEN 'every role' ELSE format('role %I', pg_get_userbyid(grantee)) END, does),
           format('REVOKE %s FROM %s;', revoked,
                  CASE grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END)
    FROM privileges WHERE grantee NOT IN (SELECT oid FROM superusers)
    UNION ALL
    SELECT format('role %I owns %s', pg_get_userbyid(owner), object), NULL
    FROM (TABLE owned UNION ALL TABLE fired) AS o WHERE owner NOT IN (SELECT oid FROM superusers))
SELECT format('schema %I belongs to superuser %I, and %s: code of that role would run with the rights of a superuser',
              nspname, rolname, r.text),
       concat_ws(' Or: ', r.hint, format('ALTER SCHEMA %I OWNER TO ...; gives it to a role that is no superuser.', nspname))
INTO problem, hint
FROM reasons AS r, superusers_schema
WHERE current_setting('is_superuser') = 'on'
ORDER BY r.text LIMIT 1;
END;
$$;
