-- Columns that may refer to a key without a foreign key. Their names tell, as Rails, Django and Hibernate build them:
-- photos.user_id for users.id. It is a guess: nothing is changed because of it unless the caller asks for that.

-- The words of a name in lower case, with underscores in between: photo_owner_id for photoOwnerID.
CREATE FUNCTION snowflake_internal.words_of(name text) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
SELECT lower(regexp_replace($1, '([a-z0-9])([A-Z])', '\1_\2', 'g'))
$$;

-- The words, and all that can be the singular of the last one.
CREATE FUNCTION snowflake_internal.singulars(words text) RETURNS text[]
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
SELECT ARRAY[$1, regexp_replace($1, '(..)s$', '\1'), regexp_replace($1, '(..)es$', '\1'), regexp_replace($1, '(..)ies$', '\1y'),
             regexp_replace($1, 'people$', 'person'), regexp_replace($1, 'children$', 'child'),
             regexp_replace($1, 'men$', 'man')]
$$;

-- Names, without underscores, of columns that refer to a key. kind table: name of table and key, also behind other
-- words; part: a part of these, if no other table is called that (bases); key: that of the key.
CREATE FUNCTION snowflake_internal.referring_names(tbl name, key name)
    RETURNS TABLE (name text, kind text, bases text[])
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE ROWS 10
    SET search_path = pg_catalog, pg_temp
AS $$
WITH t AS (
    SELECT snowflake_internal.singulars(w.words) AS whole, w.key,
           -- Django begins the names of tables with that of the application.
           snowflake_internal.singulars(substring(w.words, '^[^_]+_(.+)$')) AS tail
    FROM (SELECT snowflake_internal.words_of($1), snowflake_internal.words_of($2)) AS w(words, key)
), named AS (
    SELECT w || '_' || t.key AS name, 'table' AS kind, NULL::text[] AS bases FROM t CROSS JOIN unnest(t.whole) AS w
    UNION ALL
    SELECT t.key, 'table', NULL FROM t WHERE EXISTS (SELECT FROM unnest(t.whole) AS w WHERE starts_with(t.key, w || '_'))
    UNION ALL
    SELECT w || '_' || t.key, 'part', t.tail FROM t CROSS JOIN unnest(t.tail) AS w
    UNION ALL
    SELECT substring(t.key, '^(.+)_id$'), 'part', ARRAY[substring(t.key, '^(.+)_id$')] FROM t WHERE t.key LIKE '%\_id'
    UNION ALL
    SELECT t.key, 'key', NULL FROM t WHERE t.key <> 'id'
)
SELECT DISTINCT ON (replace(n.name, '_', '')) replace(n.name, '_', ''), n.kind, n.bases
FROM named AS n ORDER BY replace(n.name, '_', ''), n.kind DESC
$$;

-- Integer columns, and arrays, that may refer to one of the keys by their names, in tables of its schema; type_column
-- tells the table, if it can be any.
CREATE FUNCTION snowflake_internal.referrers(tables oid[], columns smallint[])
    RETURNS TABLE (tbl regclass, attnum smallint, column_name name, new_type text, type_column name,
                   key_tbl regclass, key_attnum smallint)
    LANGUAGE sql STABLE STRICT PARALLEL SAFE ROWS 10
    SET search_path = pg_catalog, pg_temp
AS $$
-- The names are looked at once for all shards: these have tables of the same names.
WITH keys AS MATERIALIZED (
    SELECT c.oid, c.relnamespace AS schema, c.relname, k.attnum, a.attname
    FROM unnest($1, $2) AS k(tbl, attnum)
    JOIN pg_class AS c ON c.oid = k.tbl
    JOIN pg_attribute AS a ON a.attrelid = k.tbl AND a.attnum = k.attnum
), names AS MATERIALIZED (
    SELECT k.*, n.* FROM (SELECT DISTINCT relname, attname FROM keys) AS k
    CROSS JOIN LATERAL snowflake_internal.referring_names(k.relname, k.attname) AS n
), tables AS MATERIALIZED (
    SELECT c.oid, c.relnamespace AS schema, c.relname
    FROM (SELECT DISTINCT schema FROM keys) AS s
    JOIN pg_class AS c ON c.relnamespace = s.schema AND c.relkind IN ('r', 'p') AND NOT c.relispartition
), taken AS MATERIALIZED (
    SELECT DISTINCT t.schema, b.base
    FROM (SELECT t.relname, snowflake_internal.singulars(snowflake_internal.words_of(t.relname)) AS bases
          FROM (SELECT DISTINCT relname FROM tables) AS t) AS n
    JOIN tables AS t ON t.relname = n.relname
    CROSS JOIN LATERAL unnest(n.bases) AS b(base)
), named AS MATERIALIZED (
    SELECT k.oid, k.attnum, k.schema, n.name, n.kind
    FROM names AS n JOIN keys AS k ON k.relname = n.relname AND k.attname = n.attname
    WHERE n.bases IS NULL OR NOT EXISTS (SELECT FROM unnest(n.bases) AS b(base)
                                         JOIN taken AS t ON t.schema = k.schema AND t.base = b.base)
), columns AS MATERIALIZED (
    -- Without those whose values come from a sequence, or that refer to something by a foreign key.
    SELECT t.oid, t.schema, a.attnum, a.attname, a.atttypid IN ('integer[]'::regtype, 'smallint[]'::regtype) AS is_array,
           EXISTS (SELECT FROM pg_index AS i
                   WHERE i.indrelid = t.oid AND i.indisprimary AND i.indnkeyatts = 1 AND i.indkey[0] = a.attnum) AS is_key,
           EXISTS (SELECT FROM taken AS o
                   WHERE o.schema = t.schema
                     AND o.base = regexp_replace(snowflake_internal.words_of(a.attname), '_?ids?$', '')) AS has_table
    FROM tables AS t
    JOIN pg_attribute AS a ON a.attrelid = t.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attinhcount = 0
        AND a.attidentity = '' AND a.attgenerated = ''
        AND a.atttypid IN ('integer'::regtype, 'smallint'::regtype, 'integer[]'::regtype, 'smallint[]'::regtype)
    WHERE NOT EXISTS (SELECT FROM pg_constraint AS f
                      WHERE f.conrelid = t.oid AND f.contype = 'f' AND a.attnum = ANY (f.conkey))
      AND NOT EXISTS (SELECT FROM pg_attrdef AS f
                      JOIN pg_depend AS d ON d.classid = 'pg_attrdef'::regclass AND d.objid = f.oid
                      JOIN pg_sequence AS s ON d.refclassid = 'pg_class'::regclass AND s.seqrelid = d.refobjid
                      WHERE f.adrelid = t.oid AND f.adnum = a.attnum)
), behind AS MATERIALIZED (
    -- ownerUserIDs: owneruserid, userid, id
    SELECT c.attname, c.is_array, array_to_string(w.words[i:], '') AS name, i = 1 AS is_whole
    FROM (SELECT DISTINCT attname, is_array FROM columns) AS c
    CROSS JOIN LATERAL (SELECT string_to_array(regexp_replace(snowflake_internal.words_of(c.attname),
                                                              CASE WHEN c.is_array THEN 's$' ELSE '$' END, ''),
                                               '_')) AS w(words)
    CROSS JOIN LATERAL generate_series(1, cardinality(w.words)) AS i
), found AS (
    SELECT c.oid, c.attnum, c.attname, c.is_array, NULL::name AS type_column, k.oid AS key_tbl, k.attnum AS key_attnum,
           CASE k.kind WHEN 'table' THEN 1 ELSE 2 END AS rank
    FROM named AS k
    JOIN behind AS b ON b.name = k.name
    JOIN columns AS c ON c.schema = k.schema AND c.attname = b.attname AND c.is_array = b.is_array
    WHERE NOT (k.kind = 'key' AND c.is_key) AND (b.is_whole OR k.kind = 'table' AND NOT c.has_table)
    UNION ALL
    SELECT c.oid, c.attnum, c.attname, c.is_array, NULL, k.oid, k.attnum, 1
    FROM keys AS k JOIN columns AS c ON c.oid = k.oid
    WHERE replace(snowflake_internal.words_of(c.attname), '_', '')
          = 'parent' || replace(snowflake_internal.words_of(k.attname), '_', '')
    UNION ALL
    -- A pair that can refer to any table: imageable_type and imageable_id, content_type_id and object_id.
    SELECT c.oid, c.attnum, c.attname, false, a.attname, k.oid, k.attnum, 3
    FROM columns AS c
    JOIN pg_attribute AS a ON a.attrelid = c.oid AND NOT a.attisdropped
        AND a.attname IN (regexp_replace(c.attname, '_?[iI][dD]$', '_type'), regexp_replace(c.attname, '[iI][dD]$', 'Type'),
                          CASE c.attname WHEN 'object_id' THEN 'content_type_id' END)
    JOIN pg_type AS y ON y.oid = a.atttypid AND (y.typcategory = 'S' OR a.attname = 'content_type_id')
    JOIN keys AS k ON k.schema = c.schema
    WHERE c.attname ~ '[iI][dD]$' AND NOT c.is_array AND NOT c.has_table
)
SELECT DISTINCT ON (f.key_tbl, f.key_attnum, f.oid, f.attnum)
       f.oid::regclass, f.attnum, f.attname, CASE WHEN f.is_array THEN 'bigint[]' ELSE 'bigint' END, f.type_column,
       f.key_tbl::regclass, f.key_attnum
FROM found AS f
WHERE (f.oid, f.attnum) <> (f.key_tbl, f.key_attnum)
ORDER BY f.key_tbl, f.key_attnum, f.oid, f.attnum, f.rank
$$;
