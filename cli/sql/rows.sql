-- name: foreign_keys
-- The foreign keys, and the rows that violate them as RI_Initial_Check() finds them: a row with a NULL in the key refers to nothing. Keys
-- that are NOT VALID are made again as they are. The operators are those of the key, whatever the search_path is. Keys with PERIOD
-- (PostgreSQL 18) compare no single rows. Texts: of a query that shows all violations; of one with a row if there is any; of the different
-- values that rows refer to, each as an array; and of the rows that have these values. Between them the names of the columns that the key
-- refers to. The last one begins a hint with such a query: it runs code of the table's owner while it is planned.
SELECT conrelid::regclass, quote_ident(conname), confrelid::regclass, violations, 'SELECT 1::text FROM (' || violations || ' LIMIT 1) AS v',
       referred, columns, rows, connamespace::regnamespace, conrelid,
       CASE WHEN pg_get_userbyid(c.relowner) <> current_user
            THEN format('as role %I, because code of that role can run: ', pg_get_userbyid(c.relowner)) ELSE '' END,
       c.relowner <> p.relowner
FROM pg_constraint AS f
JOIN pg_class AS c ON c.oid = conrelid JOIN pg_class AS p ON p.oid = confrelid
CROSS JOIN LATERAL (SELECT CASE c.relkind WHEN 'p' THEN '' ELSE 'ONLY ' END || conrelid::regclass,
                           CASE p.relkind WHEN 'p' THEN '' ELSE 'ONLY ' END || confrelid::regclass) AS o (one, other),
LATERAL (SELECT format('SELECT %s FROM %s AS t WHERE %s AND NOT EXISTS (SELECT FROM %s AS r WHERE %s)',
                       string_agg(format('t.%I', a.attname), ', ' ORDER BY k.n), one,
                       string_agg(format('t.%I IS NOT NULL', a.attname), ' AND ' ORDER BY k.n), other,
                       string_agg(format('r.%I OPERATOR(%I.%s) t.%I', r.attname, n.nspname, e.oprname, a.attname), ' AND ' ORDER BY k.n)),
                format('SELECT DISTINCT ARRAY[%s]::text FROM %s AS t WHERE %s',
                       string_agg(format('t.%I::text', a.attname), ', ' ORDER BY k.n), one,
                       string_agg(format('t.%I IS NOT NULL', a.attname), ' AND ' ORDER BY k.n)),
                array_agg(r.attname ORDER BY k.n),
                format('SELECT * FROM %s AS r WHERE ARRAY[%s]::text = ANY (', other,
                       string_agg(format('r.%I::text', r.attname), ', ' ORDER BY k.n))
         FROM unnest(conkey, confkey, conpfeqop) WITH ORDINALITY AS k (referring, referred, op, n)
         JOIN pg_attribute AS a ON a.attrelid = conrelid AND a.attnum = k.referring
         JOIN pg_attribute AS r ON r.attrelid = confrelid AND r.attnum = k.referred
         JOIN pg_operator AS e ON e.oid = k.op JOIN pg_namespace AS n ON n.oid = e.oprnamespace) AS q (violations, referred, columns, rows)
WHERE connamespace = ANY ($1::regnamespace[]) AND contype = 'f' AND conparentid = 0 AND convalidated
AND coalesce(to_jsonb(f) ->> 'conperiod', 'false') = 'false'
AND (p.relnamespace <> ALL ($1::regnamespace[]) OR NOT $2::boolean)
ORDER BY 1, 2

-- name: lacking
-- The referred table on this server, and the rest of a query of the values that it lacks: each value is an array of texts, in the order of
-- the columns. $1, $2: names of the table and of its columns. Types and operators are those of its unique index, and not those of the
-- other server, whose types can belong to anybody here. A domain and a cast from text by a function run code: the type is the domain's
-- base, and with such a cast there is no row.
SELECT indrelid, format('AS v (value) WHERE NOT EXISTS (SELECT FROM %s%s AS r WHERE %s)', CASE relkind WHEN 'p' THEN '' ELSE 'ONLY ' END,
                        indrelid::regclass, condition)
FROM pg_index JOIN pg_class AS c ON c.oid = indrelid
CROSS JOIN LATERAL (
    SELECT string_agg(format('r.%I OPERATOR(%I.%s) (value::text[])[%s]::%s', a.attname, nspname, oprname, w.n, format_type(type, -1)),
                      ' AND ' ORDER BY w.n), count(*)
    FROM unnest($2::name[]) WITH ORDINALITY AS w (name, n)
    JOIN pg_attribute AS a ON a.attrelid = indrelid AND a.attname = w.name
    JOIN pg_type AS t ON t.oid = a.atttypid
    JOIN unnest(indkey::smallint[]) WITH ORDINALITY AS k (column_number, n) ON column_number = a.attnum AND k.n <= indnkeyatts
    JOIN pg_opclass ON pg_opclass.oid = indclass[k.n - 1]
    JOIN pg_amop ON amopfamily = opcfamily AND amopstrategy = 3 AND amoplefttype = opcintype AND amoprighttype = opcintype
    JOIN pg_operator AS o ON o.oid = amopopr JOIN pg_namespace AS s ON s.oid = oprnamespace
    CROSS JOIN LATERAL (SELECT CASE typtype WHEN 'd' THEN typbasetype ELSE t.oid END) AS b (type)
    WHERE NOT EXISTS (SELECT FROM pg_type AS d WHERE d.oid = type AND typtype = 'd')
      AND NOT EXISTS (SELECT FROM pg_cast JOIN pg_proc AS f ON f.oid = castfunc JOIN pg_roles AS u ON u.oid = proowner
                      WHERE castsource = 'text'::regtype AND casttarget = type AND NOT rolsuper AND proowner <> relowner)) AS q (condition, columns)
WHERE indrelid = to_regclass($1) AND indisunique AND indisvalid AND indpred IS NULL
AND indnkeyatts = cardinality($2::name[]) AND columns = indnkeyatts
LIMIT 1

-- name: copied_tables
-- Rows are copied in the binary format, which takes less of both servers, if the format of all columns is that of the value alone, in all
-- versions. An OID is in that of an array of a type that a user made, of a composite type and of regclass. Others may have another format
-- in another version of the server or of an extension. An enum is its label, and a domain its type. The size has the TOAST table.
WITH fixed AS (
    SELECT unnest(ARRAY[oid, typarray]) AS type FROM pg_type
    WHERE oid = ANY ('{bool,bytea,int2,int4,int8,float4,float8,numeric,text,varchar,bpchar,date,time,
                       timetz,timestamp,timestamptz,uuid,json,jsonb,inet,cidr}'::regtype[]))
SELECT format('%I.%I', nspname, relname), string_agg(quote_ident(attname), ', ' ORDER BY attnum),
       coalesce(array_agg(attname ORDER BY attnum) FILTER (WHERE attname IS NOT NULL), '{}'),
       bool_and(typtype = 'e' OR CASE typtype WHEN 'd' THEN typbasetype ELSE t.oid END IN (TABLE fixed)),
       coalesce(pg_table_size(c.oid), 0) AS size, c.oid, c.relfilenode
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = relnamespace
LEFT JOIN (pg_attribute AS a JOIN pg_type AS t ON t.oid = atttypid)
ON attrelid = c.oid AND attnum > 0 AND NOT attisdropped AND attgenerated = ''
WHERE c.oid = ANY ($1::oid[]) GROUP BY c.oid, n.oid ORDER BY size DESC, c.oid
