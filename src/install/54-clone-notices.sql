-- Cloning a shard: what is not copied, by name.

CREATE FUNCTION snowflake_internal.clone_notices(
        template regnamespace, target regnamespace,
        old_relations oid[], new_relations oid[], old_functions oid[]) RETURNS void
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    rest record;
BEGIN
    -- What stands in the template, or on its tables, and is not copied. What an extension has put there is
    -- no part of the template.
    FOR rest IN
        SELECT coalesce(r.kind, CASE i.type
                   WHEN 'view' THEN 'views' WHEN 'materialized view' THEN 'materialized views'
                   WHEN 'foreign table' THEN 'foreign tables' WHEN 'type' THEN 'types'
                   WHEN 'function' THEN 'functions' WHEN 'procedure' THEN 'functions' WHEN 'aggregate' THEN 'functions'
                   ELSE i.type END) AS kind,
               string_agg(coalesce(r.name, i.identity), ', ' ORDER BY coalesce(r.name, i.identity) COLLATE "C") AS names
        FROM (
            SELECT CASE d.classid WHEN 'pg_default_acl'::regclass THEN 'default privileges'
                                  WHEN 'pg_publication_namespace'::regclass THEN 'publications' END AS kind,
                   d.classid, d.objid, NULL::text AS name
            FROM pg_depend AS d
            WHERE d.refclassid = 'pg_namespace'::regclass AND d.refobjid = template
              AND NOT (d.classid = 'pg_class'::regclass AND d.objid = ANY (old_relations))
              AND NOT (d.classid = 'pg_proc'::regclass AND d.objid = ANY (old_functions))
              AND NOT EXISTS (SELECT FROM pg_statistic_ext AS s
                              WHERE d.classid = 'pg_statistic_ext'::regclass AND s.oid = d.objid
                                AND s.stxrelid = ANY (old_relations))
              AND d.classid <> 'pg_extension'::regclass
            UNION ALL
            SELECT 'triggers', 'pg_trigger'::regclass, t.oid, NULL
            FROM unnest(old_relations) AS old (oid) JOIN pg_trigger AS t ON t.tgrelid = old.oid
            WHERE NOT t.tgisinternal AND t.tgparentid = 0
            UNION ALL
            SELECT 'rules', 'pg_rewrite'::regclass, w.oid, NULL
            FROM unnest(old_relations) AS old (oid) JOIN pg_rewrite AS w ON w.ev_class = old.oid
            UNION ALL
            SELECT 'policies', 'pg_policy'::regclass, y.oid, NULL
            FROM unnest(old_relations) AS old (oid) JOIN pg_policy AS y ON y.polrelid = old.oid
            UNION ALL
            SELECT 'publications', 'pg_publication_rel'::regclass, b.oid, NULL
            FROM unnest(old_relations) AS old (oid) JOIN pg_publication_rel AS b ON b.prrelid = old.oid
            UNION ALL
            SELECT 'security labels', NULL, NULL, format('%s on %s', l.provider, old.oid::regclass)
            FROM unnest(old_relations) AS old (oid)
            JOIN pg_seclabel AS l ON l.objoid = old.oid AND l.classoid = 'pg_class'::regclass
            UNION ALL
            SELECT CASE WHEN c.relispartition THEN 'partitions' ELSE 'inheritance' END, NULL, NULL,
                   format('%s of %s', h.inhrelid::regclass, h.inhparent::regclass)
            FROM unnest(old_relations) AS old (oid)
            JOIN pg_inherits AS h ON h.inhrelid = old.oid
            JOIN pg_class AS c ON c.oid = h.inhrelid
            WHERE NOT c.relispartition OR h.inhparent <> ALL (old_relations)
            UNION ALL
            SELECT 'partitions', NULL, NULL, format('%s of %s', h.inhrelid::regclass, h.inhparent::regclass)
            FROM unnest(old_relations) AS old (oid)
            JOIN pg_inherits AS h ON h.inhparent = old.oid
            JOIN pg_class AS c ON c.oid = h.inhrelid
            WHERE c.relispartition AND h.inhrelid <> ALL (old_relations)
        ) AS r (kind, classid, objid, name)
        LEFT JOIN LATERAL pg_identify_object(r.classid, r.objid, 0) AS i ON true
        WHERE NOT EXISTS (SELECT FROM pg_depend AS e
                          WHERE e.classid = r.classid AND e.objid = r.objid AND e.deptype = 'e')
        GROUP BY 1
        ORDER BY 1
    LOOP
        RAISE NOTICE '% not copied: %', rest.kind, rest.names;
    END LOOP;

    SELECT string_agg(DISTINCT format('%s %s', n.type, n.identity) COLLATE "C", ', ') AS used,
           string_agg(DISTINCT format('%s %s', m.type, m.identity) COLLATE "C", ', ') AS users INTO rest
    FROM (
        SELECT 'pg_class'::regclass::oid, new.oid FROM unnest(new_relations) AS new (oid)
        UNION ALL
        SELECT 'pg_class'::regclass, x.indexrelid
        FROM unnest(new_relations) AS new (oid) JOIN pg_index AS x ON x.indrelid = new.oid
        UNION ALL
        SELECT 'pg_attrdef'::regclass, a.oid
        FROM unnest(new_relations) AS new (oid) JOIN pg_attrdef AS a ON a.adrelid = new.oid
        UNION ALL
        SELECT 'pg_constraint'::regclass, c.oid
        FROM unnest(new_relations) AS new (oid) JOIN pg_constraint AS c ON c.conrelid = new.oid
        UNION ALL
        SELECT 'pg_statistic_ext'::regclass, s.oid
        FROM unnest(new_relations) AS new (oid) JOIN pg_statistic_ext AS s ON s.stxrelid = new.oid
    ) AS k (classid, objid)
    JOIN pg_depend AS u ON u.classid = k.classid AND u.objid = k.objid
     AND (u.refclassid NOT IN ('pg_class'::regclass, 'pg_namespace'::regclass, 'pg_constraint'::regclass)
          OR u.refclassid = 'pg_class'::regclass AND u.refobjid = ANY (old_relations))
    CROSS JOIN LATERAL pg_identify_object(u.refclassid, u.refobjid, 0) AS n
    CROSS JOIN LATERAL pg_identify_object(u.classid, u.objid, u.objsubid) AS m
    WHERE n.schema = (SELECT s.nspname FROM pg_namespace AS s WHERE s.oid = template)
      AND NOT EXISTS (SELECT FROM pg_depend AS e
                      WHERE e.classid = u.refclassid AND e.objid = u.refobjid AND e.deptype = 'e');
    IF rest.used IS NOT NULL THEN
        RAISE NOTICE 'schema % goes on using objects of schema %: %', target, template, rest.used USING
            DETAIL = format('They are used by %s.', rest.users);
    END IF;
END;
$$;
COMMENT ON FUNCTION snowflake_internal.clone_notices(regnamespace, regnamespace, oid[], oid[], oid[]) IS
    'step of snowflake_clone_shard(): says by name what is not copied, and what of the template the clone goes on using';
