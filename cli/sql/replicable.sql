-- name: not_replicable
-- The first part says why UPDATE and DELETE would fail, on the source as soon as the table is published: RelationGetIndexList() takes an
-- index as replica identity only if it is unique, valid, not deferrable and not partial. The hint names the key that REPLICA IDENTITY NOTHING
-- leaves out, or a unique index, and else prefers a key: with FULL the apply worker searches the whole table for each row. Partitioned tables need no identity, because their
-- partitions are published, by their own names. Temporary tables are in no schema of a shard; unlogged ones cannot be published. The apply
-- worker runs with session_replication_role = replica, in which triggers that are ENABLE ALWAYS or REPLICA fire: they have fired on the
-- source before. CREATE PUBLICATION ... FOR TABLE needs the rights of each table's owner; the fence those of the sequences and native
-- functions, and --complete those of the schema.
WITH tables AS (
    SELECT *, oid::regclass AS name FROM pg_class WHERE relnamespace = ANY ($1::regnamespace[]) AND relkind IN ('r', 'p'))
SELECT CASE WHEN i.indexrelid IS NULL THEN format('table %s has no replica identity', name)
            WHEN NOT i.indimmediate THEN format('index %s, the replica identity of table %s, is DEFERRABLE: UPDATE and DELETE would fail',
                                                i.indexrelid::regclass, name)
            ELSE format('index %s, the replica identity of table %s, is invalid: UPDATE and DELETE would fail',
                        i.indexrelid::regclass, name) END,
       CASE WHEN i.indexrelid IS NULL THEN
                coalesce((SELECT format('ALTER TABLE %s REPLICA IDENTITY DEFAULT;', name) FROM pg_index
                          WHERE indrelid = t.oid AND relreplident = 'n' AND indisprimary AND indimmediate AND indisvalid),
                         (SELECT format('ALTER TABLE %s REPLICA IDENTITY USING INDEX %s; or give it a primary key', name, min(quote_ident(c.relname)))
                          FROM pg_index AS u JOIN pg_class AS c ON c.oid = u.indexrelid
                          WHERE u.indrelid = t.oid AND u.indisunique AND u.indimmediate AND u.indisvalid
                          AND u.indpred IS NULL AND u.indexprs IS NULL
                          AND NOT EXISTS (SELECT FROM pg_attribute AS a WHERE a.attrelid = t.oid
                                          AND a.attnum = ANY (u.indkey) AND NOT a.attnotnull)
                          HAVING count(*) > 0),
                         snowflake_internal.told_to(relowner, format('ALTER TABLE %1$s ADD PRIMARY KEY (...); or ALTER TABLE %1$s '
                             'REPLICA IDENTITY FULL; if few of its rows are changed: the target reads the whole table for each row of an UPDATE or '
                             'DELETE', name)))
                || '. Do the same in all shards: diff compares it'
            WHEN NOT i.indimmediate THEN format('ALTER TABLE %s REPLICA IDENTITY FULL; or USING another unique index. Do the same in all shards: diff compares it', name)
            ELSE format('REINDEX INDEX %s;', i.indexrelid::regclass) END
FROM tables AS t LEFT JOIN pg_index AS i
    ON i.indrelid = t.oid AND CASE relreplident WHEN 'i' THEN indisreplident WHEN 'd' THEN indisprimary END
WHERE relkind = 'r' AND relpersistence = 'p' AND relreplident <> 'f'
AND (i.indexrelid IS NULL OR NOT i.indimmediate OR NOT i.indisvalid)
UNION ALL
SELECT format('table %s is unlogged', name), snowflake_internal.told_to(relowner, format('ALTER TABLE %s SET LOGGED;', name))
FROM tables WHERE relkind = 'r' AND relpersistence = 'u'
UNION ALL
SELECT format('trigger %I of table %s would fire for replicated rows, too', tgname, name),
       format('ALTER TABLE %s ENABLE TRIGGER %I;', name, tgname)
FROM tables AS t JOIN pg_trigger ON tgrelid = t.oid WHERE tgenabled IN ('A', 'R') AND NOT tgisinternal
UNION ALL
SELECT format('column %s.%I points to large objects, which are not replicated', name, attname),
       'Store them as bytea.'
FROM tables AS t JOIN pg_attribute ON attrelid = t.oid JOIN pg_type AS y ON y.oid = atttypid
WHERE typname = 'lo' AND NOT attisdropped
UNION ALL
SELECT format('role %I is no member of role %I, which owns %s%s', current_user, rolname, (array_agg(object ORDER BY rank, object))[1],
              CASE WHEN count(*) > 1 THEN format(' and %s more', count(*) - 1) END),
       CASE WHEN rolsuper THEN 'Move the shard as a superuser, or give its objects to a role that is no superuser: ALTER ... OWNER TO'
            ELSE format('GRANT %I TO %I%s;', rolname, current_user,
                  CASE WHEN current_setting('server_version_num')::integer >= 160000 THEN ' WITH INHERIT TRUE' END) END
FROM (SELECT relowner, 1, format('table %s', name) FROM tables
      UNION ALL
      SELECT relowner, 2, format('sequence %s', oid::regclass) FROM pg_class WHERE relnamespace = ANY ($1::regnamespace[]) AND relkind = 'S'
      UNION ALL
      SELECT proowner, 3, format('function %s', p.oid::regprocedure)
      FROM snowflake_internal.calls() JOIN pg_proc AS p ON classid = 'pg_proc'::regclass AND p.oid = objid
      WHERE is_direct AND pronamespace = ANY ($1::regnamespace[])
      UNION ALL
      SELECT nspowner, 4, format('schema %I', nspname) FROM pg_namespace WHERE oid = ANY ($1::regnamespace[])) AS o (owner, rank, object)
JOIN pg_roles AS r ON r.oid = owner WHERE NOT pg_has_role(owner, 'USAGE')
GROUP BY rolname, rolsuper
ORDER BY 1

-- name: without_equality
-- With REPLICA IDENTITY FULL the apply worker compares whole rows (tuples_equal() in execReplication.c), by the equality of each type's
-- default btree or hash operator class: that of a domain's type, of an array's elements, of a composite type's columns. Types such as
-- varchar have no default class, and use that of a type to which they are binary-coercible. Generated columns are not sent, so they are not
-- compared. Enums and ranges always have an equality.
WITH RECURSIVE types AS (
    SELECT c.oid::regclass AS name, a.attname, a.atttypid AS type
    FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    WHERE c.relnamespace = ANY ($1::regnamespace[]) AND c.relkind = 'r' AND c.relreplident = 'f' AND a.attgenerated = ''
    UNION
    SELECT t.name, t.attname, part.type
    FROM types AS t JOIN pg_type AS y ON y.oid = t.type,
    LATERAL (SELECT y.typbasetype WHERE y.typtype = 'd'
             UNION ALL SELECT y.typelem WHERE y.typcategory = 'A'
             UNION ALL SELECT atttypid FROM pg_attribute
                       WHERE y.typtype = 'c' AND attrelid = y.typrelid AND attnum > 0 AND NOT attisdropped) AS part (type)
)
SELECT format('column %s.%I is of type %s, which has no equality, and the table''s REPLICA IDENTITY is FULL: UPDATE and DELETE '
              'would not be replicated', name, attname, t.type::regtype),
       format('Give the table a primary key, and ALTER TABLE %s REPLICA IDENTITY DEFAULT;', name)
FROM types AS t JOIN pg_type AS y ON y.oid = t.type
WHERE y.typtype = 'b' AND y.typcategory <> 'A' AND NOT EXISTS (
    SELECT FROM pg_opclass AS o JOIN pg_am AS m ON m.oid = o.opcmethod
    WHERE m.amname IN ('btree', 'hash') AND o.opcdefault
    AND (o.opcintype = t.type
         OR EXISTS (SELECT FROM pg_cast WHERE castsource = t.type AND casttarget = o.opcintype AND castmethod = 'b'
                                          AND castcontext = 'i')))

-- name: hashed_enums
-- Types whose hash differs between servers: that of an enum is the hash of its OID, so the target would refuse the rows of a partition. An
-- enum can be in an array, a composite type, a domain or a range.
WITH RECURSIVE types AS (
    SELECT c.oid::regclass AS name, a.attname, a.atttypid AS type
    FROM pg_partitioned_table AS p JOIN pg_class AS c ON c.oid = partrelid
    JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = ANY (partattrs)
    WHERE c.relnamespace = ANY ($1::regnamespace[]) AND partstrat = 'h'
    UNION
    SELECT t.name, t.attname, part.type
    FROM types AS t JOIN pg_type AS y ON y.oid = t.type,
    LATERAL (SELECT y.typbasetype WHERE y.typtype = 'd'
             UNION ALL SELECT y.typelem WHERE y.typcategory = 'A'
             UNION ALL SELECT rngsubtype FROM pg_range WHERE rngtypid = y.oid
             UNION ALL SELECT atttypid FROM pg_attribute
                       WHERE y.typtype = 'c' AND attrelid = y.typrelid AND attnum > 0 AND NOT attisdropped) AS part (type)
)
SELECT format('table %s is partitioned by HASH of %I with the enum %s, which has other hashes on each server', name, attname, t.type::regtype),
       'Partition it by LIST, or by HASH of another column. Do the same in all shards: diff compares it'
FROM types AS t JOIN pg_type AS y ON y.oid = t.type WHERE y.typtype = 'e'
