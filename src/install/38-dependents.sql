-- The dependents of an object, and the statement that drops one. The catalogues are read with a search_path of
-- pg_catalog only, so that every name is written with its schema.

-- The objects that depend on an object or on one of its columns (0: on any part); the view for its rule.
CREATE FUNCTION snowflake_internal.dependents(classid oid, objid oid, objsubid integer)
    RETURNS TABLE (classid oid, objid oid)
    LANGUAGE sql STABLE STRICT PARALLEL SAFE ROWS 3 SET search_path = pg_catalog, pg_temp AS $$
-- A view depends on its tables through its rule _RETURN. A partition's copy of a trigger is no object of its own.
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

-- The statement that drops an object; empty for a part of an object, which is dropped with it; NULL if it must not be dropped.
CREATE FUNCTION snowflake_internal.drop_text(classid oid, objid oid) RETURNS text
    LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
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
                 SELECT FROM pg_constraint AS c
                 WHERE $1 = 'pg_constraint'::regclass AND $2 = c.oid AND c.contype = 't') THEN ''
    END
FROM pg_identify_object($1, $2, 0) AS o
$$;
