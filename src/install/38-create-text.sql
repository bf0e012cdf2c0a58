-- The statements that drop an object and create it again, as text, for an error of snowflake_attach(). The
-- catalogues are read with a search_path of pg_catalog only, so that every name is written with its schema.

CREATE FUNCTION snowflake_internal.dependents(classid oid, objid oid, objsubid integer)
    RETURNS TABLE (classid oid, objid oid)
    LANGUAGE sql STABLE STRICT PARALLEL SAFE ROWS 3
    SET search_path = pg_catalog, pg_temp
AS $$
-- A view depends on what it reads through its rule _RETURN. A partition's copy of a trigger is no object of its own.
SELECT DISTINCT v.classid, v.objid
FROM pg_depend AS d
LEFT JOIN pg_rewrite AS w ON d.classid = 'pg_rewrite'::regclass AND w.oid = d.objid AND w.rulename = '_RETURN'
LEFT JOIN pg_class AS c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid
LEFT JOIN pg_trigger AS t ON d.classid = 'pg_trigger'::regclass AND t.oid = d.objid
CROSS JOIN LATERAL (SELECT CASE WHEN w.oid IS NULL THEN d.classid ELSE 'pg_class'::regclass::oid END,
                           coalesce(w.ev_class, d.objid)) AS v(classid, objid)
WHERE d.refclassid = $1 AND d.refobjid = $2 AND ($3 = 0 OR d.refobjsubid = $3)
  AND (v.classid, v.objid) <> ($1, $2)
  AND c.relkind IS DISTINCT FROM 't' AND coalesce(t.tgparentid, 0) = 0
$$;
COMMENT ON FUNCTION snowflake_internal.dependents(oid, oid, integer) IS
    'what depends on an object or on one of its columns (0: on any part of it), the rule of a view being the view';

CREATE FUNCTION snowflake_internal.drop_text(classid oid, objid oid) RETURNS text
    LANGUAGE sql STABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
SELECT CASE
    WHEN o.type = 'publication relation' THEN
        (SELECT format('ALTER PUBLICATION %I DROP TABLE ONLY %s;', p.pubname, r.prrelid::regclass)
         FROM pg_publication_rel AS r JOIN pg_publication AS p ON p.oid = r.prpubid WHERE r.oid = $2)
    WHEN o.type IN ('view', 'materialized view', 'index', 'rule', 'trigger', 'policy', 'function', 'procedure') THEN
        format('DROP %s %s;', upper(o.type), o.identity)
    -- The row type of a view, the constraint of a constraint trigger.
    WHEN EXISTS (SELECT FROM pg_type AS t JOIN pg_class AS c ON c.oid = t.typrelid AND c.relkind IN ('v', 'm')
                 WHERE $1 = 'pg_type'::regclass AND $2 IN (t.oid, t.typarray)
                 UNION ALL
                 SELECT FROM pg_constraint AS c WHERE $1 = 'pg_constraint'::regclass AND $2 = c.oid AND c.contype = 't') THEN ''
    END
FROM pg_identify_object($1, $2, 0) AS o
$$;
COMMENT ON FUNCTION snowflake_internal.drop_text(oid, oid) IS
    'the statement that drops an object; empty for a part of an object, which is dropped with it; NULL if create_text() cannot create the object again';

CREATE FUNCTION snowflake_internal.grants_text(acl aclitem[], owner oid, object text, columns text DEFAULT '') RETURNS SETOF text
    LANGUAGE sql STABLE CALLED ON NULL INPUT PARALLEL SAFE ROWS 1
    SET search_path = pg_catalog, pg_temp
AS $$
-- All are granted by the owner, whoever granted them before. The owner's own privileges are those of a new object.
SELECT format('GRANT %s%s ON %s TO %s%s;', string_agg(g.privilege_type, $4 || ', ' ORDER BY g.privilege_type), $4, $3,
              CASE WHEN g.grantee = 0 THEN 'PUBLIC' ELSE g.grantee::regrole::text END,
              CASE WHEN g.is_grantable THEN ' WITH GRANT OPTION' END)
FROM aclexplode($1) AS g
WHERE g.grantee <> $2
GROUP BY g.grantee, g.is_grantable
ORDER BY g.grantee::regrole::text COLLATE "C", g.is_grantable
$$;
COMMENT ON FUNCTION snowflake_internal.grants_text(aclitem[], oid, text, text) IS
    'the statements that grant the privileges of an access control list on an object (TABLE ..., FUNCTION ...), or on columns of it';

CREATE FUNCTION snowflake_internal.create_relation_text(relation oid) RETURNS text
    LANGUAGE sql STABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
-- The query of a materialized view is run by REFRESH, as its owner, and not by the role that creates it.
SELECT concat_ws(E'\n',
    CASE WHEN k.kind = 'INDEX' THEN pg_get_indexdef(c.oid) || ';'
         ELSE format(E'CREATE %s %s%s AS\n%s%s;', k.kind, c.oid::regclass, ' WITH (' || array_to_string(c.reloptions, ', ') || ')',
                     rtrim(pg_get_viewdef(c.oid), ';'), CASE c.relkind WHEN 'm' THEN E'\nWITH NO DATA' END) END,
    (SELECT format('ALTER %s %s SET TABLESPACE %I;', k.kind, c.oid::regclass, t.spcname) FROM pg_tablespace AS t WHERE t.oid = c.reltablespace),
    CASE WHEN k.kind <> 'INDEX' AND c.relowner <> quote_ident(current_user)::regrole THEN
        format('ALTER %s %s OWNER TO %s;', k.kind, c.oid::regclass, c.relowner::regrole) END,
    (SELECT string_agg(g.line, E'\n') FROM snowflake_internal.grants_text(c.relacl, c.relowner, 'TABLE ' || c.oid::regclass) AS g(line)),
    (SELECT string_agg(g.line, E'\n')
     FROM pg_attribute AS a
     CROSS JOIN LATERAL snowflake_internal.grants_text(a.attacl, c.relowner, 'TABLE ' || c.oid::regclass, format(' (%I)', a.attname)) AS g(line)
     WHERE a.attrelid = c.oid),
    (SELECT string_agg(format('COMMENT ON COLUMN %s.%I IS %L;', c.oid::regclass, a.attname, col_description(c.oid, a.attnum)), E'\n' ORDER BY a.attnum)
     FROM pg_attribute AS a WHERE a.attrelid = c.oid AND a.attnum > 0 AND col_description(c.oid, a.attnum) IS NOT NULL),
    CASE WHEN c.relkind = 'm' AND c.relispopulated THEN format('REFRESH MATERIALIZED VIEW %s;', c.oid::regclass) END)
FROM pg_class AS c
CROSS JOIN LATERAL (SELECT CASE c.relkind WHEN 'v' THEN 'VIEW' WHEN 'm' THEN 'MATERIALIZED VIEW' ELSE 'INDEX' END AS kind) AS k
WHERE c.oid = $1
$$;
COMMENT ON FUNCTION snowflake_internal.create_relation_text(oid) IS
    'step of create_text(): a view, a materialized view or an index';

CREATE FUNCTION snowflake_internal.create_function_text(function oid, type text, identity text) RETURNS text
    LANGUAGE sql STABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
-- Every role may EXECUTE a new function. If that was changed, it is revoked first.
SELECT concat_ws(E'\n',
    rtrim(pg_get_functiondef(p.oid), E'\n') || ';',
    CASE WHEN p.proowner <> quote_ident(current_user)::regrole THEN
        format('ALTER %s %s OWNER TO %s;', upper($2), $3, p.proowner::regrole) END,
    CASE WHEN p.proacl IS NOT NULL THEN format('REVOKE ALL ON %s %s FROM PUBLIC;', upper($2), $3) END,
    (SELECT string_agg(g.line, E'\n') FROM snowflake_internal.grants_text(p.proacl, p.proowner, format('%s %s', upper($2), $3)) AS g(line)))
FROM pg_proc AS p WHERE p.oid = $1
$$;
COMMENT ON FUNCTION snowflake_internal.create_function_text(oid, text, text) IS
    'step of create_text(): a function or a procedure, its type and identity as in pg_identify_object()';

CREATE FUNCTION snowflake_internal.create_policy_text(policy oid) RETURNS text
    LANGUAGE sql STABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
SELECT format('CREATE POLICY %I ON %s AS %s FOR %s TO %s%s%s;', p.polname, p.polrelid::regclass,
              CASE WHEN p.polpermissive THEN 'PERMISSIVE' ELSE 'RESTRICTIVE' END,
              CASE p.polcmd WHEN 'r' THEN 'SELECT' WHEN 'a' THEN 'INSERT' WHEN 'w' THEN 'UPDATE' WHEN 'd' THEN 'DELETE' ELSE 'ALL' END,
              (SELECT string_agg(CASE WHEN r.role = 0 THEN 'PUBLIC' ELSE r.role::regrole::text END, ', ') FROM unnest(p.polroles) AS r(role)),
              ' USING (' || pg_get_expr(p.polqual, p.polrelid) || ')',
              ' WITH CHECK (' || pg_get_expr(p.polwithcheck, p.polrelid) || ')')
FROM pg_policy AS p WHERE p.oid = $1
$$;
COMMENT ON FUNCTION snowflake_internal.create_policy_text(oid) IS
    'step of create_text(): a policy';

CREATE FUNCTION snowflake_internal.create_text(classid oid, objid oid) RETURNS text
    LANGUAGE sql STABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
    -- Constants in the text are read again in a session with other settings.
    SET datestyle = 'ISO'
    SET intervalstyle = 'postgres'
    SET extra_float_digits = 1
AS $$
SELECT concat_ws(E'\n',
    CASE $1
    WHEN 'pg_class'::regclass THEN snowflake_internal.create_relation_text($2)
    WHEN 'pg_proc'::regclass THEN snowflake_internal.create_function_text($2, o.type, o.identity)
    WHEN 'pg_policy'::regclass THEN snowflake_internal.create_policy_text($2)
    WHEN 'pg_rewrite'::regclass THEN pg_get_ruledef($2)
    WHEN 'pg_trigger'::regclass THEN pg_get_triggerdef($2) || ';'
    WHEN 'pg_publication_rel'::regclass THEN
        (SELECT format('ALTER PUBLICATION %I ADD TABLE ONLY %s%s%s;', p.pubname, r.prrelid::regclass,
                       (SELECT ' (' || string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) || ')'
                        FROM pg_attribute AS a WHERE a.attrelid = r.prrelid AND a.attnum = ANY (r.prattrs)),
                       ' WHERE ' || pg_get_expr(r.prqual, r.prrelid))
         FROM pg_publication_rel AS r JOIN pg_publication AS p ON p.oid = r.prpubid WHERE r.oid = $2)
    END,
    -- A trigger or a rule that is disabled, or enabled on replicas.
    (SELECT format('ALTER TABLE %s %s %s %I;', s.tbl,
                   CASE s.state WHEN 'D' THEN 'DISABLE' WHEN 'R' THEN 'ENABLE REPLICA' ELSE 'ENABLE ALWAYS' END, upper(o.type), s.name)
     FROM (SELECT 'pg_trigger'::regclass, t.oid, t.tgrelid::regclass, t.tgenabled, t.tgname FROM pg_trigger AS t
           UNION ALL
           SELECT 'pg_rewrite'::regclass, w.oid, w.ev_class::regclass, w.ev_enabled, w.rulename FROM pg_rewrite AS w) AS s(classid, oid, tbl, state, name)
     WHERE s.classid = $1 AND s.oid = $2 AND s.state <> 'O'),
    CASE WHEN obj_description($2, $1::regclass::name) IS NOT NULL THEN
        format('COMMENT ON %s %s IS %L;', upper(o.type), o.identity, obj_description($2, $1::regclass::name)) END)
FROM pg_identify_object($1, $2, 0) AS o
$$;
COMMENT ON FUNCTION snowflake_internal.create_text(oid, oid) IS
    'the statements that create a view, index, rule, trigger, policy or function again, or add a table to its publication; with owner, privileges and comment';
