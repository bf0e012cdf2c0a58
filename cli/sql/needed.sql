-- name: needed
-- The needs of a definition outside of itself: roles that own its objects or have rights in it; objects of other schemas, their schemas, and the
-- extensions to which they belong. $1: schemas; $2: OIDs of tables alone. Not those that initdb has made. Rows: catalogue, schema, identity, an object
-- of the definition that needs it, of a role whether it owns that, and the extension of the object.
--
-- Contents are the objects of the schemas and their parts: constraints, defaults, triggers, rules, policies, indexes. The part of a partition
-- is made with that of its parent, as a foreign key to a partitioned table is for each partition. A part that is used, such as a row type or
-- the index of a key, stands for the object to which it belongs. A part has no schema of its own in pg_depend.
WITH RECURSIVE homes AS (
    SELECT unnest($1::regnamespace[])::oid AS schema
    UNION SELECT relnamespace FROM pg_class WHERE oid = ANY ($2::oid[])
), contents (classid, objid) AS (
    (SELECT 'pg_namespace'::regclass::oid, unnest($1::regnamespace[])::oid UNION ALL SELECT 'pg_class'::regclass, unnest($2::oid[]))
    UNION
    SELECT d.classid, d.objid FROM contents AS c JOIN pg_depend AS d ON (d.refclassid, d.refobjid) = (c.classid, c.objid)
    WHERE (c.classid = 'pg_namespace'::regclass OR d.deptype IN ('i', 'a', 'P', 'S'))
    AND d.classid NOT IN ('pg_extension'::regclass, 'pg_publication_rel'::regclass, 'pg_publication_namespace'::regclass)
    AND NOT EXISTS (SELECT FROM pg_class AS r WHERE d.classid = r.tableoid AND d.objid = r.oid
                    AND relnamespace <> 'pg_toast'::regnamespace AND relnamespace NOT IN (TABLE homes))
), used (classid, objid, by_class, by_object) AS (
    (SELECT DISTINCT ON (d.refclassid, d.refobjid) d.refclassid, d.refobjid, d.classid, d.objid
     FROM contents AS c JOIN pg_depend AS d ON (d.classid, d.objid) = (c.classid, c.objid)
     WHERE d.deptype <> 'e' AND (d.refclassid, d.refobjid) NOT IN (TABLE contents)
     AND NOT EXISTS (SELECT FROM pg_depend AS p WHERE (p.classid, p.objid) = (c.classid, c.objid)
                     AND (p.deptype = 'P' OR p.deptype = 'i' AND p.refclassid = p.classid))
     ORDER BY d.refclassid, d.refobjid, d.classid, d.objid)
    UNION
    SELECT d.refclassid, d.refobjid, by_class, by_object
    FROM used AS u JOIN pg_depend AS d ON (d.classid, d.objid) = (u.classid, u.objid)
    WHERE d.deptype IN ('i', 'a', 'n', 'e') AND CASE WHEN EXISTS (
        SELECT FROM pg_depend AS n WHERE (n.classid, n.objid, n.refclassid) = (u.classid, u.objid, 'pg_namespace'::regclass))
        THEN d.refclassid IN ('pg_namespace'::regclass, 'pg_extension'::regclass)
        ELSE d.deptype IN ('i', 'a') OR d.refclassid = 'pg_extension'::regclass END
), outside AS (
    SELECT classid, objid, (array_agg(ARRAY[by_class, by_object] ORDER BY by_class, by_object))[1:1] AS user_of, false AS owns
    FROM used AS u
    WHERE (objid >= 16384 OR (classid, objid) = ('pg_namespace'::regclass, to_regnamespace('public'))) AND (classid, objid) NOT IN (TABLE contents)
    -- no part
    AND (EXISTS (SELECT FROM pg_depend AS n WHERE (n.classid, n.objid, n.refclassid) = (u.classid, u.objid, 'pg_namespace'::regclass))
         OR NOT EXISTS (SELECT FROM pg_depend AS n WHERE (n.classid, n.objid) = (u.classid, u.objid) AND n.deptype IN ('i', 'a')))
    GROUP BY classid, objid
    UNION ALL
    SELECT 'pg_authid'::regclass, role, (array_agg(ARRAY[classid, objid] ORDER BY type = 'o' DESC, classid = 'pg_namespace'::regclass DESC, classid, objid))[1:1], bool_or(type = 'o')
    FROM (SELECT c.classid, c.objid, s.refobjid AS role, s.deptype AS type
          FROM contents AS c JOIN pg_shdepend AS s ON (s.classid, s.objid) = (c.classid, c.objid)
          WHERE s.dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
          AND s.refclassid = 'pg_authid'::regclass AND s.deptype IN ('o', 'a', 'r')
          UNION ALL -- roles of initdb are not in pg_shdepend
          SELECT tableoid, oid, nspowner, 'o' FROM pg_namespace WHERE oid = ANY ($1::regnamespace[])) AS r
    GROUP BY role
)
SELECT classid, coalesce(schema, ''), identity, pg_describe_object(user_of[1][1], user_of[1][2], 0), owns,
       (SELECT quote_ident(extname) FROM pg_depend AS d JOIN pg_extension AS x ON x.oid = refobjid
        WHERE (d.classid, d.objid, refclassid, deptype) = (o.classid, o.objid, 'pg_extension'::regclass, 'e'))
FROM outside AS o CROSS JOIN LATERAL pg_identify_object(classid, objid, 0)
WHERE identity IS NOT NULL
ORDER BY classid = 'pg_authid'::regclass DESC, classid = 'pg_extension'::regclass DESC, classid = 'pg_namespace'::regclass DESC, identity

-- name: found
-- The objects that are there, of those with catalogues $1, schemas $2 and identities $3: their kind, in SQL, too; the owner; whether that role
-- is, or can become, a superuser, or is that of this session; and the first of these alone. The owner of the database stands for
-- pg_database_owner. A role is its own owner. Role 10 is the first superuser: only superusers make objects that have no owner.
WITH wanted AS (SELECT * FROM unnest($1::oid[], $2::name[], $3::text[]) AS w (class, schema, identity)),
schemas AS MATERIALIZED (SELECT ARRAY(SELECT oid FROM pg_namespace WHERE nspname IN (SELECT schema FROM wanted)) AS oids),
candidates (class, object, owner, kind) AS MATERIALIZED (
    SELECT c.tableoid, c.oid, relowner, NULL FROM pg_class AS c, schemas WHERE relnamespace = ANY (oids) AND relkind NOT IN ('i', 'I', 'c')
    UNION ALL
    SELECT t.tableoid, t.oid, typowner, CASE typtype WHEN 'c' THEN 'composite' WHEN 'd' THEN 'domain' WHEN 'e' THEN 'enum' WHEN 'r' THEN 'range' END
    FROM pg_type AS t, schemas WHERE typnamespace = ANY (oids)
    UNION ALL SELECT p.tableoid, p.oid, proowner, NULL FROM pg_proc AS p, schemas WHERE pronamespace = ANY (oids)
    UNION ALL SELECT o.tableoid, o.oid, oprowner, NULL FROM pg_operator AS o, schemas WHERE oprnamespace = ANY (oids)
    UNION ALL SELECT o.tableoid, o.oid, opcowner, NULL FROM pg_opclass AS o, schemas WHERE opcnamespace = ANY (oids)
    UNION ALL SELECT o.tableoid, o.oid, opfowner, NULL FROM pg_opfamily AS o, schemas WHERE opfnamespace = ANY (oids)
    UNION ALL SELECT c.tableoid, c.oid, collowner, NULL FROM pg_collation AS c, schemas WHERE collnamespace = ANY (oids)
    UNION ALL SELECT c.tableoid, c.oid, conowner, NULL FROM pg_conversion AS c, schemas WHERE connamespace = ANY (oids)
    UNION ALL SELECT t.tableoid, t.oid, cfgowner, NULL FROM pg_ts_config AS t, schemas WHERE cfgnamespace = ANY (oids)
    UNION ALL SELECT t.tableoid, t.oid, dictowner, NULL FROM pg_ts_dict AS t, schemas WHERE dictnamespace = ANY (oids)
    UNION ALL SELECT t.tableoid, t.oid, 10, NULL FROM pg_ts_parser AS t, schemas WHERE prsnamespace = ANY (oids)
    UNION ALL SELECT t.tableoid, t.oid, 10, NULL FROM pg_ts_template AS t, schemas WHERE tmplnamespace = ANY (oids)
    UNION ALL SELECT tableoid, oid, nspowner, NULL FROM pg_namespace
    UNION ALL SELECT tableoid, oid, extowner, NULL FROM pg_extension
    UNION ALL SELECT tableoid, oid, lanowner, NULL FROM pg_language
    UNION ALL SELECT tableoid, oid, srvowner, NULL FROM pg_foreign_server
    UNION ALL SELECT tableoid, oid, fdwowner, NULL FROM pg_foreign_data_wrapper
    UNION ALL SELECT tableoid, oid, 10, NULL FROM pg_am
    UNION ALL SELECT tableoid, oid, 10, NULL FROM pg_transform
    UNION ALL SELECT 'pg_authid'::regclass, oid, oid, NULL FROM pg_roles)
SELECT w.class, w.identity, concat_ws(' ', kind, type), upper(replace(type, '-', ' ')), quote_ident(rolname),
       is_super OR a.oid = (SELECT oid FROM pg_roles WHERE rolname = current_user), is_super
FROM candidates AS c CROSS JOIN LATERAL pg_identify_object(c.class, object, 0) AS i
JOIN wanted AS w ON (w.class, w.identity) = (c.class, i.identity)
JOIN pg_roles AS r ON r.oid = owner JOIN pg_database ON datname = current_database()
CROSS JOIN LATERAL (SELECT CASE r.oid WHEN 'pg_database_owner'::regrole THEN datdba ELSE r.oid END) AS a (oid)
CROSS JOIN LATERAL (SELECT EXISTS (SELECT FROM pg_roles AS s WHERE rolsuper AND pg_has_role(a.oid, s.oid, 'MEMBER'))) AS s (is_super)
