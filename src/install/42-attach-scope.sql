-- Steps of snowflake_attach(): which columns change, and what stands in the way.

-- is_attached: the column itself, in its table and in all below it; they get the DEFAULT.
-- is_narrow: a column, attached or referring, that cannot hold an ID yet; it gets another type.
-- A column that can be reached from two roots has a row for each.
CREATE FUNCTION snowflake_internal.attach_scope(
        tbl regclass, attnum smallint,
        OUT root regclass, OUT member regclass, OUT member_attnum smallint, OUT member_column name,
        OUT is_attached boolean, OUT is_narrow boolean) RETURNS SETOF record
    LANGUAGE sql STABLE STRICT PARALLEL SAFE ROWS 10
    SET search_path = pg_catalog, pg_temp
AS $$
-- From the column along its table's inheritance tree, up and down, and along foreign keys towards
-- those who refer to it, until nothing is added: who refers to an ID must be able to hold one, and
-- who refers to that in turn. A column that is wide already may lie between two that are not. What
-- the column itself refers to is not reached: a bigint may refer to an integer.
WITH RECURSIVE reached AS (
    SELECT a.attrelid, a.attnum, a.attname FROM pg_attribute AS a WHERE a.attrelid = $1 AND a.attnum = $2
    UNION
    SELECT a.attrelid, a.attnum, a.attname
    FROM reached AS r
    CROSS JOIN LATERAL (
        -- Through pg_depend: pg_constraint has no index on the table that is referred to.
        SELECT c.conrelid AS relid, k.referring AS attnum, NULL::name AS attname
        FROM pg_depend AS d
        JOIN pg_constraint AS c ON c.oid = d.objid AND c.contype = 'f' AND c.confrelid = r.attrelid
        CROSS JOIN LATERAL unnest(c.confkey, c.conkey) AS k(referred_to, referring)
        WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = r.attrelid AND d.refobjsubid = r.attnum
          AND d.classid = 'pg_constraint'::regclass AND k.referred_to = r.attnum
        UNION ALL
        SELECT i.inhrelid, NULL, r.attname FROM pg_inherits AS i WHERE i.inhparent = r.attrelid
        UNION ALL
        SELECT i.inhparent, NULL, r.attname FROM pg_inherits AS i WHERE i.inhrelid = r.attrelid
    ) AS n
    JOIN pg_attribute AS a ON a.attrelid = n.relid AND (a.attnum = n.attnum OR a.attname = n.attname)
                          AND a.attnum > 0 AND NOT a.attisdropped
), tree AS (
    -- A type is changed at the root of a tree, and ALTER TABLE takes it to all members. Looked up by
    -- index, for trees of thousands of partitions.
    SELECT r.attrelid AS root, r.attrelid, r.attnum, r.attname
    FROM reached AS r
    WHERE NOT EXISTS (SELECT FROM pg_inherits AS i
                      JOIN pg_attribute AS p ON p.attrelid = i.inhparent AND p.attname = r.attname AND p.attnum > 0
                      WHERE i.inhrelid = r.attrelid)
    UNION
    SELECT t.root, a.attrelid, a.attnum, a.attname
    FROM tree AS t
    JOIN pg_inherits AS i ON i.inhparent = t.attrelid
    JOIN pg_attribute AS a ON a.attrelid = i.inhrelid AND a.attname = t.attname AND a.attnum > 0
)
SELECT t.root, t.attrelid, t.attnum, t.attname,
       t.root = $1 AND t.attname = (SELECT a.attname FROM pg_attribute AS a WHERE a.attrelid = $1 AND a.attnum = $2),
       y.typoutput IN ('int4out'::regproc, 'int2out'::regproc) -- a domain's is that of the type it is over
FROM tree AS t
JOIN pg_attribute AS a ON a.attrelid = t.attrelid AND a.attnum = t.attnum
JOIN pg_type AS y ON y.oid = a.atttypid
$$;
COMMENT ON FUNCTION snowflake_internal.attach_scope(regclass, smallint) IS
    'the columns that snowflake_attach() reaches: the column itself, in children and partitions, and those that refer to it by foreign keys';

CREATE FUNCTION snowflake_internal.attach_obstacles(tbl regclass, attnum smallint) RETURNS SETOF text
    LANGUAGE sql STABLE STRICT PARALLEL SAFE ROWS 1
    SET search_path = pg_catalog, pg_temp
AS $$
-- What ALTER TABLE would refuse one by one, some of it after an hour of rewriting: see
-- ATPrepAlterColumnType() and ATExecAlterColumnType() in PostgreSQL's tablecmds.c. Depending objects
-- of a kind that is not known to be rebuilt count as in the way, so that a later version's are told.
WITH RECURSIVE scope AS MATERIALIZED (
    SELECT s.*, pg_describe_object('pg_class'::regclass, s.member, s.member_attnum) AS described
    FROM snowflake_internal.attach_scope($1, $2) AS s
    WHERE s.is_narrow OR s.is_attached
), row_types AS (
    -- The types that hold rows of a table: its own, and arrays, domains and composites of that.
    SELECT DISTINCT s.member, c.reltype AS type
    FROM scope AS s JOIN pg_class AS c ON c.oid = s.member WHERE s.is_narrow
    UNION
    SELECT r.member, coalesce(c.reltype, d.objid)
    FROM row_types AS r
    JOIN pg_depend AS d ON d.refclassid = 'pg_type'::regclass AND d.refobjid = r.type
    LEFT JOIN pg_class AS c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid AND c.relkind = 'c'
    WHERE d.classid = 'pg_type'::regclass OR c.oid IS NOT NULL
)
-- Rebuilt by ALTER TABLE are indexes, constraints, statistics and the column's own DEFAULT; an owned
-- sequence does not mind. All else that depends on the column must go before its type can change.
SELECT format('%s depends on %s',
              CASE WHEN v.oid IS NOT NULL THEN pg_describe_object('pg_class'::regclass, v.oid, 0)
                   WHEN f.oid IS NOT NULL THEN 'generated ' || pg_describe_object('pg_class'::regclass, f.adrelid, f.adnum)
                   ELSE pg_describe_object(d.classid, d.objid, d.objsubid) END,
              s.described)
FROM scope AS s
JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = s.member AND d.refobjsubid = s.member_attnum
LEFT JOIN pg_class AS c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid
LEFT JOIN pg_rewrite AS w ON d.classid = 'pg_rewrite'::regclass AND w.oid = d.objid
LEFT JOIN pg_class AS v ON v.oid = w.ev_class AND v.relkind IN ('v', 'm')
LEFT JOIN pg_attrdef AS f ON d.classid = 'pg_attrdef'::regclass AND f.oid = d.objid
LEFT JOIN pg_trigger AS t ON d.classid = 'pg_trigger'::regclass AND t.oid = d.objid
WHERE s.is_narrow
  AND d.classid NOT IN ('pg_constraint'::regclass, 'pg_statistic_ext'::regclass)
  AND c.relkind IS DISTINCT FROM 'i' AND c.relkind IS DISTINCT FROM 'I' AND c.relkind IS DISTINCT FROM 'S'
  AND (f.adrelid, f.adnum) IS DISTINCT FROM (s.member::oid, s.member_attnum)
  AND coalesce(t.tgparentid, 0) = 0 -- else it is a partition's copy
UNION
-- The key's columns depend on the table, not the other way round.
SELECT format('%s is in the partition key', s.described)
FROM scope AS s
JOIN pg_depend AS d ON d.classid = 'pg_class'::regclass AND d.objid = s.member AND d.objsubid = s.member_attnum
                   AND d.refclassid = 'pg_class'::regclass AND d.refobjid = s.member AND d.refobjsubid = 0
WHERE s.is_narrow AND d.deptype = 'i'
UNION
-- ALTER TABLE drops the index that such a key relies on with its parent's, before it comes to the key.
SELECT format('%s refers to a partition, %s', pg_describe_object('pg_constraint'::regclass, f.oid, 0), s.member)
FROM scope AS s
JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = s.member AND d.refobjsubid = s.member_attnum
                   AND d.classid = 'pg_constraint'::regclass
JOIN pg_constraint AS f ON f.oid = d.objid AND f.contype = 'f' AND f.confrelid = s.member AND f.conparentid = 0
JOIN pg_class AS x ON x.oid = f.conindid AND x.relispartition
WHERE s.is_narrow
UNION
-- A stored row of the table, in whatever wrapping, would have to be rewritten, too.
SELECT format('%s holds rows of table %s', pg_describe_object('pg_class'::regclass, d.objid, d.objsubid), r.member)
FROM row_types AS r
JOIN pg_depend AS d ON d.refclassid = 'pg_type'::regclass AND d.refobjid = r.type
                   AND d.classid = 'pg_class'::regclass AND d.objsubid > 0
JOIN pg_class AS c ON c.oid = d.objid AND c.relkind IN ('r', 'p', 'm')
UNION
-- What decides on the type stands elsewhere: in a composite type, on a foreign server, in a session
-- that alone can read its temporary table, in a domain, in an expression, in another parent.
SELECT format('%s is of a typed table', s.described)
FROM scope AS s JOIN pg_class AS c ON c.oid = s.member WHERE s.is_narrow AND c.reloftype <> 0
UNION
SELECT format('%s is of a foreign table', s.described)
FROM scope AS s JOIN pg_class AS c ON c.oid = s.member WHERE s.is_narrow AND c.relkind = 'f'
UNION
SELECT format('%s is of a temporary table of another session', s.described)
FROM scope AS s JOIN pg_class AS c ON c.oid = s.member WHERE pg_is_other_temp_schema(c.relnamespace)
UNION
SELECT format('%s is of the domain %s', s.described, a.atttypid::regtype)
FROM scope AS s JOIN pg_attribute AS a ON a.attrelid = s.member AND a.attnum = s.member_attnum
WHERE s.is_narrow AND a.atttypid NOT IN ('integer'::regtype, 'smallint'::regtype)
UNION
SELECT format('%s is a generated column', s.described)
FROM scope AS s JOIN pg_attribute AS a ON a.attrelid = s.member AND a.attnum = s.member_attnum
WHERE s.is_narrow AND a.attgenerated <> ''
UNION
SELECT format('%s is inherited from several parents', s.described)
FROM scope AS s WHERE s.is_narrow
GROUP BY s.described HAVING count(DISTINCT s.root) > 1
UNION
-- A child's own identity takes no DEFAULT from its parent; and the sequence of the column's identity
-- is dropped with it, which nobody may rely on then.
SELECT CASE WHEN u.objid IS NULL THEN format('%s is an identity column', s.described)
            ELSE format('%s depends on %s', pg_describe_object(u.classid, u.objid, u.objsubid), pg_describe_object(d.classid, d.objid, 0)) END
FROM scope AS s
JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = s.member AND d.refobjsubid = s.member_attnum
                   AND d.classid = 'pg_class'::regclass AND d.deptype = 'i'
JOIN pg_class AS q ON q.oid = d.objid AND q.relkind = 'S'
LEFT JOIN pg_depend AS u ON u.refclassid = 'pg_class'::regclass AND u.refobjid = q.oid AND u.deptype = 'n'
WHERE s.is_attached AND (u.objid IS NOT NULL OR s.member <> s.root)
$$;
COMMENT ON FUNCTION snowflake_internal.attach_obstacles(regclass, smallint) IS
    'what stands in the way of snowflake_attach(), one line each; no rows: nothing';
