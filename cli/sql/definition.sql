-- name: definition
-- The rows of the catalogue that define shards, as texts without OIDs: two shards with the same texts have the same dump, but for their names and
-- numbers. $1: OIDs of schemas. Rows: the place of the schema in $1, the kind of the text, the text. Kind FUNCTION, PROCEDURE or COMMENT: as that
-- entry of a dump. SQL: names schemas and numbers as SQL does. Empty: names no other object.
--
-- A row is taken as a whole, but for the columns that are named here, so that a column of another version of PostgreSQL counts, too. A column
-- that is left out is an OID, whose object a text names; an expression or a list of columns, which a text shows; or a statistic. An OID that
-- is forgotten makes two shards differ that are equal, and costs a dump. A text that is forgotten hides a difference.
--
-- Objects are found by the index of pg_depend, as in fingerprint.sql, so that the time does not grow with the number of other shards. For the same
-- reason the call of a function of the shard is written here where it has no arguments, and a trigger: the functions of PostgreSQL that write them
-- look the name up among all functions of that name.
WITH schemas AS MATERIALIZED (SELECT oid AS schema, n FROM unnest($1::oid[]) WITH ORDINALITY AS s (oid, n)),
members AS MATERIALIZED (
    SELECT n, classid, objid FROM schemas CROSS JOIN LATERAL (
        SELECT classid, objid FROM pg_depend WHERE refclassid = 'pg_namespace'::regclass AND refobjid = schema OFFSET 0) AS d),
types AS MATERIALIZED (
    SELECT m.n, t.* FROM members AS m JOIN LATERAL (SELECT tableoid, * FROM pg_type WHERE oid = objid OFFSET 0) AS t ON true
    WHERE classid = 'pg_type'::regclass),
tables AS MATERIALIZED (
    SELECT n, objid AS oid FROM members WHERE classid = 'pg_class'::regclass
    UNION ALL SELECT n, typrelid FROM types WHERE typrelid <> 0),
relations AS MATERIALIZED (
    SELECT r.n, c.* FROM (
        TABLE tables
        UNION ALL SELECT n, indexrelid FROM tables JOIN LATERAL (SELECT indexrelid FROM pg_index WHERE indrelid = oid OFFSET 0) AS i ON true) AS r
    JOIN LATERAL (SELECT tableoid, * FROM pg_class AS c WHERE c.oid = r.oid OFFSET 0) AS c ON true),
constraints AS MATERIALIZED (
    SELECT n, relname AS of, c.* FROM relations AS r
    JOIN LATERAL (SELECT tableoid, * FROM pg_constraint WHERE conrelid = r.oid OFFSET 0) AS c ON true
    UNION ALL SELECT n, typname, c.* FROM types AS t
    JOIN LATERAL (SELECT tableoid, * FROM pg_constraint WHERE contypid = t.oid OFFSET 0) AS c ON true),
triggers AS MATERIALIZED (
    SELECT n, relname, t.* FROM relations AS r JOIN LATERAL (SELECT tableoid, * FROM pg_trigger WHERE tgrelid = r.oid OFFSET 0) AS t ON true
    WHERE relkind IN ('r', 'p', 'v', 'f') AND (NOT tgisinternal OR tgenabled <> 'O')),
policies AS MATERIALIZED (
    SELECT n, relname, p.* FROM relations AS r JOIN LATERAL (SELECT tableoid, * FROM pg_policy WHERE polrelid = r.oid OFFSET 0) AS p ON true),
rules AS MATERIALIZED (
    SELECT n, relname, w.* FROM relations AS r JOIN LATERAL (SELECT tableoid, * FROM pg_rewrite WHERE ev_class = r.oid OFFSET 0) AS w ON true),
functions AS MATERIALIZED (
    SELECT n, nspname, p.* FROM members JOIN LATERAL (SELECT * FROM pg_proc WHERE oid = objid OFFSET 0) AS p ON true
    JOIN pg_namespace AS s ON s.oid = pronamespace WHERE classid = 'pg_proc'::regclass),
objects (n, classid, objid) AS MATERIALIZED (
    SELECT n, 'pg_namespace'::regclass::oid, schema FROM schemas
    UNION TABLE members
    UNION SELECT n, tableoid, oid FROM relations
    UNION SELECT n, tableoid, oid FROM constraints
    UNION SELECT n, tableoid, oid FROM triggers
    UNION SELECT n, tableoid, oid FROM policies
    UNION SELECT n, tableoid, oid FROM rules)

SELECT n, '', jsonb_build_array('schema', nspowner::regrole, to_jsonb(s) - ARRAY['oid', 'nspname', 'nspowner'])::text
FROM schemas JOIN pg_namespace AS s ON s.oid = schema

UNION ALL
SELECT n, '', jsonb_build_array('relation', relowner::regrole, (SELECT amname FROM pg_am WHERE oid = relam),
    (SELECT spcname FROM pg_tablespace WHERE oid = reltablespace), (SELECT reloptions FROM pg_class AS t WHERE t.oid = c.reltoastrelid),
    (SELECT jsonb_agg(inhdetachpending ORDER BY inhseqno) FROM pg_inherits WHERE inhrelid = c.oid),
    to_jsonb(c) - ARRAY['n', 'tableoid', 'oid', 'relnamespace', 'reltype', 'reloftype', 'relowner', 'relam', 'relfilenode', 'reltablespace', 'relpages',
        'reltuples', 'relallvisible', 'relallfrozen', 'reltoastrelid', 'relhasindex', 'relhasrules', 'relhastriggers', 'relhassubclass', 'relnatts',
        'relrewrite', 'relfrozenxid', 'relminmxid', 'relpartbound'])::text
FROM relations AS c
UNION ALL
SELECT n, 'SQL', format(E'RELATION %I\n%s\nOF %s\nINHERITS %s\n%s\nPARTITION BY %s', relname,
    CASE WHEN relkind IN ('v', 'm') THEN pg_get_viewdef(oid) WHEN relkind IN ('i', 'I') THEN pg_get_indexdef(oid) END, NULLIF(reloftype, 0)::regtype,
    (SELECT string_agg(inhparent::regclass::text, ', ' ORDER BY inhseqno) FROM pg_inherits WHERE inhrelid = c.oid),
    pg_get_expr(relpartbound, oid), CASE WHEN relkind = 'p' THEN pg_get_partkeydef(oid) END)
FROM relations AS c WHERE relkind NOT IN ('r', 'S') OR reloftype <> 0 OR relispartition OR EXISTS (SELECT FROM pg_inherits WHERE inhrelid = c.oid)
UNION ALL
SELECT n, '', jsonb_build_array('index', relname, to_jsonb(i) - ARRAY['indexrelid', 'indrelid', 'indkey', 'indcollation', 'indclass', 'indexprs',
    'indpred', 'indcheckxmin'])::text
FROM relations AS r JOIN LATERAL (SELECT * FROM pg_index WHERE indexrelid = r.oid OFFSET 0) AS i ON true WHERE relkind IN ('i', 'I')
UNION ALL
SELECT n, '', jsonb_build_array('foreign table', relname, srvname, ftoptions)::text
FROM relations AS r JOIN LATERAL (SELECT * FROM pg_foreign_table WHERE ftrelid = r.oid OFFSET 0) AS f ON relkind = 'f'
JOIN pg_foreign_server AS s ON s.oid = ftserver

-- Of columns by their order: a number is left out where a column was dropped. Of an index those alone that have a setting. pg_attver is an option that
-- the server sets by itself, with a number of each table.
UNION ALL
SELECT n, '', jsonb_build_array('column', relname, row_number() OVER (PARTITION BY r.oid ORDER BY attnum),
    ARRAY(SELECT option FROM unnest(attoptions) AS option WHERE option !~ '^pg_attver='),
    to_jsonb(a) - ARRAY['attrelid', 'atttypid', 'attnum', 'attcacheoff', 'attisdropped', 'attcollation', 'attoptions', 'atthasmissing', 'attmissingval'])::text
FROM relations AS r JOIN LATERAL (SELECT * FROM pg_attribute WHERE attrelid = r.oid AND attnum > 0 AND NOT attisdropped OFFSET 0) AS a
    ON relkind NOT IN ('S', 'i', 'I') OR attstattarget <> -1
UNION ALL
SELECT r.n, 'SQL', format(E'COLUMN %I %I %s COLLATE %s\n%s', relname, attname, format_type(atttypid, atttypmod), NULLIF(attcollation, 0)::regcollation,
    CASE WHEN f.oid IS NULL THEN pg_get_expr(adbin, adrelid) ELSE format('%I.%I()', f.nspname, f.proname) END)
FROM relations AS r JOIN LATERAL (SELECT * FROM pg_attribute WHERE attrelid = r.oid AND attnum > 0 AND NOT attisdropped OFFSET 0) AS a
    ON relkind NOT IN ('S', 'i', 'I')
LEFT JOIN LATERAL (
    SELECT *, CASE WHEN adbin::text LIKE '{FUNCEXPR :funcid % :funcformat 0 :funccollid 0 :inputcollid 0 :args <> :location %}'
                        AND position('{' IN substr(adbin::text, 2)) = 0 THEN split_part(adbin::text, ' ', 3)::oid END AS function
    FROM pg_attrdef WHERE adrelid = r.oid AND adnum = attnum OFFSET 0) AS d ON true
LEFT JOIN functions AS f ON f.oid = d.function

UNION ALL
SELECT n, '', jsonb_build_array('sequence', relname, seqtypid::regtype, to_jsonb(s) - ARRAY['seqrelid', 'seqtypid'])::text
FROM relations AS r JOIN LATERAL (SELECT * FROM pg_sequence WHERE seqrelid = r.oid OFFSET 0) AS s ON relkind = 'S'
UNION ALL
SELECT n, 'SQL', format(E'SEQUENCE %I OWNED %s %s %I', relname, deptype, refobjid::regclass, attname)
FROM relations AS r JOIN LATERAL (
    SELECT * FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = r.oid AND deptype IN ('a', 'i') AND refclassid = 'pg_class'::regclass
    OFFSET 0) AS d ON relkind = 'S'
JOIN pg_attribute ON attrelid = refobjid AND attnum = refobjsubid

UNION ALL
SELECT n, '', jsonb_build_array('constraint', of, conparentid <> 0, to_jsonb(c) - ARRAY['n', 'of', 'tableoid', 'oid', 'connamespace', 'conrelid',
    'contypid', 'conindid', 'conparentid', 'confrelid', 'conkey', 'confkey', 'conpfeqop', 'conppeqop', 'conffeqop', 'confdelsetcols', 'conexclop',
    'conbin'])::text
FROM constraints AS c
UNION ALL SELECT n, 'SQL', format(E'CONSTRAINT %I %I\n%s', of, conname, pg_get_constraintdef(oid)) FROM constraints
UNION ALL
SELECT n, '', jsonb_build_array('trigger', relname, tgparentid <> 0, to_jsonb(t) - ARRAY['n', 'relname', 'tableoid', 'oid', 'tgrelid', 'tgparentid',
    'tgfoid', 'tgconstrrelid', 'tgconstrindid', 'tgconstraint', 'tgattr', 'tgqual'])::text
FROM triggers AS t
UNION ALL
SELECT t.n, 'SQL', CASE WHEN tgqual IS NOT NULL OR f.oid IS NULL THEN pg_get_triggerdef(t.oid)
    ELSE format('TRIGGER %I %I %I.%I OF %s FROM %s', relname, tgname, nspname, proname,
                ARRAY(SELECT attname FROM unnest(tgattr::int2[]) WITH ORDINALITY AS c (column_number, place)
                      JOIN pg_attribute ON attrelid = tgrelid AND attnum = column_number ORDER BY place), NULLIF(tgconstrrelid, 0)::regclass) END
FROM triggers AS t LEFT JOIN functions AS f ON f.oid = tgfoid
UNION ALL
SELECT n, '', jsonb_build_array('policy', relname, ARRAY(SELECT pg_get_userbyid(role) FROM unnest(polroles) AS role WHERE role <> 0 ORDER BY 1),
    to_jsonb(p) - ARRAY['n', 'relname', 'tableoid', 'oid', 'polrelid', 'polroles', 'polqual', 'polwithcheck'])::text
FROM policies AS p
UNION ALL
SELECT n, 'SQL', format(E'POLICY %I %I\nUSING %s\nCHECK %s', relname, polname, pg_get_expr(polqual, polrelid), pg_get_expr(polwithcheck, polrelid))
FROM policies
UNION ALL SELECT n, '', jsonb_build_array('rule', relname, rulename, ev_enabled)::text FROM rules
UNION ALL SELECT n, 'SQL', pg_get_ruledef(oid) FROM rules WHERE rulename <> '_RETURN'
UNION ALL
SELECT n, '', jsonb_build_array('statistics', stxowner::regrole, to_jsonb(s) - ARRAY['oid', 'stxrelid', 'stxnamespace', 'stxowner', 'stxkeys',
    'stxexprs'])::text
FROM members JOIN LATERAL (SELECT * FROM pg_statistic_ext WHERE oid = objid OFFSET 0) AS s ON classid = 'pg_statistic_ext'::regclass
UNION ALL SELECT n, 'SQL', pg_get_statisticsobjdef(objid) FROM members WHERE classid = 'pg_statistic_ext'::regclass

UNION ALL
SELECT n, CASE prokind WHEN 'p' THEN 'PROCEDURE' ELSE 'FUNCTION' END, format(E'OWNER %I\n%s', pg_get_userbyid(proowner),
    CASE prokind WHEN 'a' THEN concat(oid::regprocedure, (SELECT to_jsonb(a) - 'aggfnoid' FROM pg_aggregate AS a WHERE aggfnoid = oid),
                                      to_jsonb(f) - ARRAY['n', 'nspname', 'oid', 'pronamespace', 'proowner', 'proacl'])
                 ELSE replace(pg_get_functiondef(oid), E'\nAS $', E'\n    AS $') END)
FROM functions AS f
UNION ALL
SELECT n, 'SQL', format('FUNCTION %I(%s) ACL %s', proname, pg_get_function_identity_arguments(oid), proacl) FROM functions WHERE proacl IS NOT NULL
UNION ALL
SELECT n, '', jsonb_build_array('type', typowner::regrole, to_jsonb(t) - ARRAY['n', 'tableoid', 'oid', 'typnamespace', 'typowner', 'typrelid', 'typelem',
    'typarray', 'typsubscript', 'typinput', 'typoutput', 'typreceive', 'typsend', 'typmodin', 'typmodout', 'typanalyze', 'typbasetype', 'typcollation',
    'typdefaultbin', 'typdefault'])::text
FROM types AS t
UNION ALL
SELECT n, 'SQL', format(E'TYPE %I %s %s %s %s %s %s %s %s %s %s\n%s', typname, typsubscript, typinput, typoutput, typreceive, typsend, typmodin, typmodout,
    typanalyze, NULLIF(typcollation, 0)::regcollation, format_type(coalesce(NULLIF(typbasetype, 0), NULLIF(typelem, 0)), typtypmod),
    coalesce(pg_get_expr(typdefaultbin, 0), typdefault))
FROM types
UNION ALL
SELECT n, 'SQL', format(E'RANGE %I %s %s %s %s %s', typname, rngsubtype::regtype, rngmultitypid::regtype, rngcollation, rngsubopc, concat_ws(' ', rngcanonical,
    rngsubdiff))
FROM types AS t JOIN pg_range ON rngtypid = t.oid
UNION ALL
SELECT n, '', jsonb_build_array('enum', typname, ARRAY(SELECT enumlabel FROM pg_enum WHERE enumtypid = t.oid ORDER BY enumsortorder))::text
FROM types AS t WHERE typtype = 'e'

UNION ALL
SELECT n, '', jsonb_build_array('default privileges', defaclrole::regrole, defaclobjtype, defaclacl)::text
FROM members JOIN LATERAL (SELECT * FROM pg_default_acl WHERE oid = objid OFFSET 0) AS a ON classid = 'pg_default_acl'::regclass

UNION ALL
SELECT n, 'COMMENT', format('COMMENT ON %s %s IS %L', type, identity, description)
FROM objects AS o JOIN LATERAL (SELECT * FROM pg_description AS d WHERE d.objoid = o.objid AND d.classoid = o.classid OFFSET 0) AS d ON true
CROSS JOIN LATERAL pg_identify_object(o.classid, o.objid, objsubid)
UNION ALL
SELECT n, 'COMMENT', format('SECURITY LABEL FOR %I ON %s %s IS %L', provider, type, identity, label)
FROM pg_seclabel AS l JOIN objects AS o ON o.objid = l.objoid AND o.classid = l.classoid CROSS JOIN LATERAL pg_identify_object(o.classid, o.objid, objsubid)
UNION ALL
SELECT n, 'COMMENT', format('EXTENSION %s %s %s %s', deptype, (SELECT extname FROM pg_extension WHERE oid = refobjid), type, identity)
FROM pg_depend AS d JOIN objects AS o ON o.objid = d.objid AND o.classid = d.classid CROSS JOIN LATERAL pg_identify_object(o.classid, o.objid, 0)
WHERE refclassid = 'pg_extension'::regclass

-- Kinds that few shards have, such as operators and text search configurations: such a shard is like no other. Publications are no part of a dump.
UNION ALL
SELECT n, '', jsonb_build_array(classid, objid)::text FROM members
WHERE classid NOT IN ('pg_class'::regclass, 'pg_type'::regclass, 'pg_proc'::regclass, 'pg_statistic_ext'::regclass, 'pg_default_acl'::regclass,
    'pg_publication_namespace'::regclass)

-- name: dependents
-- Members are the objects of the schemas, and those dropped with them: row types, constraints, TOAST tables, rows of a publication. deptype
-- i, a, P and S are those that DROP follows without CASCADE. A relation of another schema is no member, even if DROP TABLE of a parent
-- takes it along: a partition there is a dependent, by deptype a.
--
-- A foreign key depends on the columns of the table and on the index of the key. The row of the index is left out, so that it is named
-- once.
--
-- Extensions in the schemas, and those with objects there, are left out with all of their objects: extensions_in names them.
--
-- MATERIALIZED, because pg_identify_object() could be called for each row of pg_depend otherwise: there may be a million, and objects that
-- are being dropped can make it an error.
WITH RECURSIVE members AS (
    SELECT 'pg_namespace'::regclass::oid AS classid, unnest($1::regnamespace[])::oid AS objid
    UNION
    SELECT d.classid, d.objid
    FROM members AS m JOIN pg_depend AS d ON d.refclassid = m.classid AND d.refobjid = m.objid
    WHERE (m.classid = 'pg_namespace'::regclass OR d.deptype IN ('i', 'a', 'P', 'S'))
    AND d.classid <> 'pg_extension'::regclass
    AND NOT EXISTS (SELECT FROM pg_class AS c
                    WHERE d.classid = c.tableoid AND d.objid = c.oid
                    AND relnamespace <> ALL ($1::regnamespace[] || 'pg_toast'::regnamespace))
), extensions AS (
    SELECT refobjid AS extension FROM pg_depend WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e' AND (classid, objid) IN (TABLE members)
    UNION SELECT oid FROM pg_extension WHERE extnamespace = ANY ($1::regnamespace[])
), of_extensions AS (
    SELECT classid, objid FROM pg_depend JOIN extensions ON refobjid = extension WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e'
    UNION ALL SELECT 'pg_extension'::regclass, extension FROM extensions
), dependents AS MATERIALIZED (
    SELECT d.* FROM members AS m JOIN pg_depend AS d ON d.refclassid = m.classid AND d.refobjid = m.objid
    WHERE d.deptype IN ('n', 'a') AND (d.classid, d.objid) NOT IN (TABLE members)
    AND (d.classid, d.objid) NOT IN (TABLE of_extensions)
)
SELECT DISTINCT pg_describe_object(classid, objid, objsubid) || ' needs ' || pg_describe_object(refclassid, refobjid, 0)
FROM dependents WHERE (pg_identify_object(refclassid, refobjid, 0)).type NOT LIKE '%index'

-- name: extensions_in
-- Extensions that are installed in the schemas $1, or have objects there, or the schema itself: DROP SCHEMA ... CASCADE drops the whole
-- extension, with its objects in all schemas. $1: names as SQL writes them; one that leads to no schema has none. Rows: the problem, and the
-- statement that mends it. An extension in schema public stays in the database's search_path.
WITH schemas AS (SELECT oid, nspname FROM pg_namespace WHERE oid = ANY (ARRAY(SELECT to_regnamespace(name) FROM unnest($1::text[]) AS name))),
-- MATERIALIZED: else they are looked for again for each object of each extension.
objects AS MATERIALIZED (
    SELECT classid, objid, schemas.oid AS schema FROM schemas JOIN pg_depend ON refclassid = 'pg_namespace'::regclass AND refobjid = schemas.oid
    UNION ALL SELECT 'pg_namespace'::regclass, oid, oid FROM schemas),
members AS (
    SELECT refobjid AS extension, type, identity, row_number() OVER (PARTITION BY refobjid ORDER BY type, identity) AS place,
           count(*) OVER (PARTITION BY refobjid) AS number
    FROM objects AS o
    JOIN pg_depend AS e USING (classid, objid)
    JOIN pg_extension AS x ON e.refclassid = x.tableoid AND e.refobjid = x.oid AND x.extnamespace <> o.schema
    CROSS JOIN LATERAL pg_identify_object(classid, objid, 0)
    WHERE e.deptype = 'e')
SELECT format('extension %I is installed in schema %I, and is of the whole database', extname, nspname),
       CASE WHEN NOT extrelocatable
            THEN format('Extension %I cannot be moved to another schema. Move the shard out of schema %I, with ALTER TABLE ... SET SCHEMA and the like.', extname, nspname)
            WHEN nspname = 'public' OR to_regnamespace('public') IS NULL
            THEN format('CREATE SCHEMA IF NOT EXISTS extensions; ALTER EXTENSION %I SET SCHEMA extensions;', extname)
            ELSE format('ALTER EXTENSION %I SET SCHEMA public;', extname) END
FROM pg_extension JOIN schemas ON schemas.oid = extnamespace
UNION ALL
SELECT format('%s %s%s belongs to extension %I, which is of the whole database', type, identity, ' and ' || NULLIF(number - 1, 0) || ' more', extname),
       format('ALTER EXTENSION %I DROP %s %s; takes an object of the shard out of the extension, and keeps it.%s', extname, upper(type), identity,
              CASE WHEN type <> 'schema' THEN format(' For one of the extension: ALTER %s %s SET SCHEMA public;', upper(type), identity) END)
FROM members JOIN pg_extension AS x ON x.oid = extension WHERE place = 1
ORDER BY 1

-- name: privileges
-- GRANT and REVOKE statements: one for each privilege that a new object would not have, or would have, in a fixed order. pg_dump leaves out
-- the initial privileges of the schema public, and keeps the order in which privileges were granted. The members of an extension have the
-- privileges that the extension gives them. Core takes acldefault() for an object whose ACL is NULL, so such an object adds none. A
-- privilege that is in the ACL and not in the default, or the other way round, is in one of the two sets: count(*) = 1. An example of the
-- second is EXECUTE on a function, revoked from PUBLIC.
WITH schemas (schema_oid, nspname) AS (SELECT oid, nspname FROM pg_namespace WHERE nspname = ANY ($1::name[])),
objects (catalog, oid, schema, name, columns, acl, default_acl) AS (
    SELECT tableoid, oid, nspname, format('SCHEMA %I', nspname), '', nspacl, acldefault('n', nspowner)
    FROM pg_namespace
    UNION ALL
    SELECT c.tableoid, c.oid, nspname,
           format('%s %s', CASE relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, c.oid::regclass), '', relacl,
           acldefault(CASE relkind WHEN 'S' THEN 's' ELSE 'r' END::"char", relowner)
    FROM pg_class AS c JOIN schemas ON relnamespace = schema_oid WHERE relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
    UNION ALL
    SELECT c.tableoid, c.oid, nspname, format('TABLE %s', c.oid::regclass), format(' (%I)', attname), attacl,
           acldefault('c', relowner)
    FROM pg_class AS c JOIN schemas ON relnamespace = schema_oid JOIN pg_attribute ON attrelid = c.oid AND NOT attisdropped
    UNION ALL
    SELECT p.tableoid, p.oid, nspname, format('ROUTINE %s', p.oid::regprocedure), '', proacl, acldefault('f', proowner)
    FROM pg_proc AS p JOIN schemas ON pronamespace = schema_oid
    UNION ALL
    SELECT t.tableoid, t.oid, nspname, format('TYPE %s', t.oid::regtype), '', typacl, acldefault('T', typowner)
    FROM pg_type AS t JOIN schemas ON typnamespace = schema_oid
)
SELECT format(CASE WHEN is_granted THEN 'GRANT %s%s ON %s TO %s%s;' ELSE 'REVOKE %s%s ON %s FROM %s;' END,
              privilege_type, columns, name,
              CASE WHEN grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END,
              CASE WHEN is_grantable THEN ' WITH GRANT OPTION' END),
       schema
FROM objects JOIN schemas ON nspname = schema, LATERAL (
    SELECT grantee, privilege_type, is_grantable, bool_or(is_there) AS is_granted
    FROM (SELECT grantee, privilege_type, is_grantable, true AS is_there FROM aclexplode(acl)
          UNION
          SELECT grantee, privilege_type, is_grantable, false FROM aclexplode(default_acl)) AS a
    GROUP BY 1, 2, 3 HAVING count(*) = 1) AS p
WHERE acl IS NOT NULL
AND NOT EXISTS (SELECT FROM pg_depend AS d WHERE d.classid = catalog AND d.objid = oid AND deptype = 'e')
ORDER BY 1

-- name: renumbering
-- The statement that drops an object, the one that makes it again, and the owner's part of its text. Constraints of partitions come after
-- those of their parents, because pg_dump makes the parents first. ONLY: a DEFAULT of a parent would replace those of its children, and
-- each of them has its own row of pg_attrdef. SET DEFAULT of a generated column is an error. A function is replaced, so its owner, its
-- privileges and the objects that call it stay. An inherited constraint (not conislocal) goes and comes with that of its parent; alone it
-- cannot be dropped. The comment of a constraint is lost with it, so it is made again; COMMENT names a table without the word TABLE, and a
-- domain with DOMAIN.
SELECT oid, '' AS drop, format('ALTER TABLE ONLY %s ALTER COLUMN %I SET DEFAULT %s;', name, attname, pg_get_expr(adbin, adrelid)) AS make
FROM (SELECT d.oid, adrelid::regclass AS name, adbin, adrelid, adnum FROM pg_attrdef AS d JOIN pg_class AS c ON c.oid = adrelid
      WHERE relnamespace = $1::regnamespace) AS d
JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum WHERE attgenerated = ''
UNION ALL
SELECT oid, '', pg_get_functiondef(oid) || ';' FROM pg_proc WHERE pronamespace = $1::regnamespace AND prosqlbody IS NOT NULL
UNION ALL
SELECT oid, '', format('ALTER DOMAIN %s SET DEFAULT %s;', oid::regtype, pg_get_expr(typdefaultbin, 0))
FROM pg_type WHERE typnamespace = $1::regnamespace AND typtype = 'd' AND typdefaultbin IS NOT NULL
UNION ALL
SELECT c.oid, format('ALTER %s DROP CONSTRAINT %I;', parent, conname),
       format('ALTER %s ADD CONSTRAINT %I %s;', parent, conname, pg_get_constraintdef(c.oid)) ||
       coalesce(format('COMMENT ON CONSTRAINT %I ON %s IS %L;', conname, regexp_replace(parent, '^TABLE ', ''),
                       obj_description(c.oid, 'pg_constraint')), '')
FROM pg_constraint AS c, LATERAL (
    SELECT CASE WHEN contypid = 0 THEN format('TABLE %s', conrelid::regclass) ELSE format('DOMAIN %s', contypid::regtype) END) AS o (parent)
WHERE connamespace = $1::regnamespace AND contype = 'c' AND (conislocal OR contypid <> 0)
ORDER BY 1

-- name: given_objects
-- The objects of the schemas $1 that the schema's owner has to give to another role: those that work with the rights of their owner, and others
-- if the one may give them to the other. Catalog, OID, and the statement that does so.
WITH schemas AS (
    SELECT n.oid, CASE nspowner WHEN 'pg_database_owner'::regrole THEN datdba ELSE nspowner END AS owner
    FROM pg_namespace AS n JOIN pg_database ON datname = current_database() WHERE nspname = ANY ($1::text[]))
SELECT c.tableoid, c.oid, format('ALTER %s %s OWNER TO %I;', CASE relkind WHEN 'v' THEN 'VIEW' WHEN 'm' THEN 'MATERIALIZED VIEW'
                                 WHEN 'f' THEN 'FOREIGN TABLE' ELSE 'TABLE' END, c.oid::regclass, pg_get_userbyid(relowner))
FROM schemas AS s JOIN pg_class AS c ON relnamespace = s.oid WHERE relkind IN ('r', 'p', 'v', 'm', 'f') AND relowner <> owner
UNION ALL
SELECT p.tableoid, p.oid, format('ALTER ROUTINE %s OWNER TO %I;', p.oid::regprocedure, pg_get_userbyid(proowner))
FROM schemas AS s JOIN pg_proc AS p ON pronamespace = s.oid WHERE prosecdef AND proowner <> owner
UNION ALL
SELECT d.classid, d.objid, format('ALTER %s %s OWNER TO %I;', CASE type WHEN 'statistics object' THEN 'STATISTICS' ELSE upper(type) END, identity,
                                  pg_get_userbyid(o.refobjid))
FROM schemas AS s JOIN pg_depend AS d ON d.refclassid = 'pg_namespace'::regclass AND d.refobjid = s.oid
JOIN pg_shdepend AS o ON o.classid = d.classid AND o.objid = d.objid AND o.deptype = 'o'
    AND dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
CROSS JOIN pg_identify_object(d.classid, d.objid, 0)
WHERE o.refobjid <> owner AND pg_has_role(owner, o.refobjid, 'MEMBER')
AND CASE d.classid WHEN 'pg_class'::regclass THEN (SELECT relkind = 'S' FROM pg_class WHERE oid = d.objid)
                   WHEN 'pg_proc'::regclass THEN (SELECT NOT prosecdef FROM pg_proc WHERE oid = d.objid) ELSE true END
AND NOT EXISTS (SELECT FROM pg_depend AS p WHERE p.classid = d.classid AND p.objid = d.objid AND p.deptype IN ('a', 'i'))
