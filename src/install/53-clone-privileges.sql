-- Cloning a shard: comments and privileges.

CREATE FUNCTION snowflake_internal.clone_comments(old_relations oid[], new_relations oid[]) RETURNS void
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    commands text;
BEGIN
    -- What LIKE leaves out: it copies those of columns, indexes, checks and statistics.
    SELECT string_agg(format(E'COMMENT ON %s IS %L;\n', m.object, m.description), '') INTO commands
    FROM (
        SELECT format('%s %s', CASE c.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, pair.new::regclass),
               t.description
        FROM unnest(old_relations, new_relations) AS pair (old, new)
        JOIN pg_class AS c ON c.oid = pair.old
        JOIN pg_description AS t ON t.objoid = c.oid AND t.classoid = 'pg_class'::regclass AND t.objsubid = 0
        UNION ALL
        SELECT format('CONSTRAINT %I ON %s', c.conname, pair.new::regclass), t.description
        FROM unnest(old_relations, new_relations) AS pair (old, new)
        JOIN pg_constraint AS c ON c.conrelid = pair.old
        JOIN pg_description AS t ON t.objoid = c.oid AND t.classoid = 'pg_constraint'::regclass
        JOIN pg_constraint AS n ON n.conrelid = pair.new AND n.contypid = 0 AND n.conname = c.conname
        WHERE obj_description(n.oid, 'pg_constraint') IS DISTINCT FROM t.description
    ) AS m (object, description);
    EXECUTE coalesce(commands, '');
END;
$$;
COMMENT ON FUNCTION snowflake_internal.clone_comments(oid[], oid[]) IS
    'step of snowflake_clone_shard(): comments on tables, sequences and constraints';

CREATE FUNCTION snowflake_internal.clone_privileges(
        template regnamespace, target regnamespace, is_new_schema boolean,
        old_relations oid[], new_relations oid[], old_functions oid[], new_functions oid[]) RETURNS void
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    commands text;
BEGIN
    -- The template owner's privileges become the clone owner's. What the clone has got by ALTER DEFAULT
    -- PRIVILEGES or by PostgreSQL's own defaults, and the template has not, is revoked; but a schema that
    -- was there before keeps what it was given.
    WITH pairs (kind, target, column_name, old_owner, old_acl, new_owner, new_acl) AS (
        SELECT 'SCHEMA', n.oid::regnamespace::text, NULL::name,
               o.nspowner, coalesce(o.nspacl, acldefault('n', o.nspowner)),
               n.nspowner, coalesce(n.nspacl, acldefault('n', n.nspowner))
        FROM pg_namespace AS o, pg_namespace AS n
        WHERE o.oid = template AND n.oid = clone_privileges.target
        UNION ALL
        SELECT CASE o.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, n.oid::regclass::text, NULL,
               o.relowner, coalesce(o.relacl, acldefault(y.kind, o.relowner)),
               n.relowner, coalesce(n.relacl, acldefault(y.kind, n.relowner))
        FROM unnest(old_relations, new_relations) AS pair (old, new)
        JOIN pg_class AS o ON o.oid = pair.old
        JOIN pg_class AS n ON n.oid = pair.new
        CROSS JOIN LATERAL (SELECT CASE o.relkind WHEN 'S' THEN 's' ELSE 'r' END::"char") AS y (kind)
        UNION ALL
        -- Fresh columns have no privileges of their own.
        SELECT 'TABLE', n.oid::regclass::text, a.attname, o.relowner, a.attacl, n.relowner, acldefault('c', n.relowner)
        FROM unnest(old_relations, new_relations) AS pair (old, new)
        JOIN pg_class AS o ON o.oid = pair.old
        JOIN pg_class AS n ON n.oid = pair.new
        JOIN pg_attribute AS a ON a.attrelid = o.oid AND a.attacl IS NOT NULL AND NOT a.attisdropped
        UNION ALL
        SELECT 'FUNCTION', n.oid::regprocedure::text, NULL,
               o.proowner, coalesce(o.proacl, acldefault('f', o.proowner)),
               n.proowner, coalesce(n.proacl, acldefault('f', n.proowner))
        FROM unnest(old_functions, new_functions) AS pair (old, new)
        JOIN pg_proc AS o ON o.oid = pair.old
        JOIN pg_proc AS n ON n.oid = pair.new
    ), wanted AS (
        SELECT p.kind, p.target, p.column_name, x.privilege_type,
               CASE x.grantee WHEN p.old_owner THEN p.new_owner ELSE x.grantee END AS grantee,
               bool_or(x.is_grantable) AS is_grantable -- by several grantors
        FROM pairs AS p, aclexplode(p.old_acl) AS x
        WHERE x.grantee = p.old_owner OR x.grantee <> p.new_owner
        GROUP BY 1, 2, 3, 4, 5
    ), present AS (
        SELECT p.kind, p.target, p.column_name, x.privilege_type, x.grantee, x.is_grantable
        FROM pairs AS p, aclexplode(p.new_acl) AS x
    ), changes AS (
        SELECT 'REVOKE' AS verb, r.* FROM (TABLE present EXCEPT TABLE wanted) AS r
        WHERE is_new_schema OR r.kind <> 'SCHEMA'
        UNION ALL
        SELECT 'GRANT', g.* FROM (TABLE wanted EXCEPT TABLE present) AS g
    ), by_target AS (
        SELECT h.verb, h.kind, h.target, h.grantee, h.is_grantable,
               string_agg(h.privilege_type || coalesce(' (' || quote_ident(h.column_name) || ')', ''), ', '
                          ORDER BY h.privilege_type, h.column_name) AS privileges
        FROM changes AS h
        GROUP BY 1, 2, 3, 4, 5
    ), statements (verb, command) AS (
        -- One statement for all tables with the same privileges.
        SELECT t.verb,
               format(E'%s %s ON %s %s %s %s%s;\n', t.verb, t.privileges, t.kind,
                      string_agg(t.target, ', ' ORDER BY t.target), CASE t.verb WHEN 'GRANT' THEN 'TO' ELSE 'FROM' END,
                      CASE t.grantee WHEN 0 THEN 'PUBLIC' ELSE t.grantee::regrole::text END,
                      CASE WHEN t.verb = 'GRANT' AND t.is_grantable THEN ' WITH GRANT OPTION' END)
        FROM by_target AS t
        GROUP BY t.verb, t.kind, t.grantee, t.is_grantable, t.privileges
    )
    SELECT string_agg(s.command, '' ORDER BY s.verb DESC) INTO commands FROM statements AS s; -- REVOKE, GRANT
    EXECUTE coalesce(commands, '');
END;
$$;
COMMENT ON FUNCTION snowflake_internal.clone_privileges(regnamespace, regnamespace, boolean, oid[], oid[], oid[], oid[]) IS
    'step of snowflake_clone_shard(): privileges on the schema, its tables, columns, sequences and functions';
