-- Giving a column native IDs: its own sequence, NOT NULL and a DEFAULT, whatever it had before.
--
-- snowflake_attach() first looks at everything, then locks, looks again, and only then changes: what
-- is refused is refused before a row is touched. The steps stand before it, one function each.
--
-- All run with the caller's rights, in the caller's transaction. In a statement, a table appears as
-- regclass and a role as regrole, which quote themselves, any other name through %I or %L. The
-- extension's schema is never part of a format string: its name may hold a %.

CREATE FUNCTION snowflake_attach_sequence_name(schema regnamespace, table_name name, column_name name) RETURNS name
    LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
-- As makeObjectName() and ChooseRelationName() do it in PostgreSQL's indexcmds.c, so that a column
-- attached and a serial column look alike, and a tool that guesses the name guesses right.
DECLARE
    table_part text := table_name;
    column_part text := column_name;
    table_bytes integer := octet_length(table_name::text);
    column_bytes integer := octet_length(column_name::text);
    label text := 'seq';
    pass integer := 0;
    chosen name;
BEGIN
    LOOP
        -- The longer of the two gives way, byte by byte; characters are cut off whole.
        WHILE table_bytes + column_bytes > current_setting('max_identifier_length')::integer - octet_length(label) - 2 LOOP
            IF table_bytes > column_bytes THEN
                table_bytes := table_bytes - 1;
            ELSE
                column_bytes := column_bytes - 1;
            END IF;
        END LOOP;
        WHILE octet_length(table_part) > table_bytes LOOP
            table_part := left(table_part, -1);
        END LOOP;
        WHILE octet_length(column_part) > column_bytes LOOP
            column_part := left(column_part, -1);
        END LOOP;
        chosen := concat_ws('_', table_part, column_part, label);
        IF NOT EXISTS (SELECT FROM pg_class AS c WHERE c.relname = chosen AND c.relnamespace = schema) THEN
            RETURN chosen;
        END IF;
        pass := pass + 1;
        label := 'seq' || pass;
    END LOOP;
END;
$$;
COMMENT ON FUNCTION snowflake_attach_sequence_name(regnamespace, name, name) IS
    'the free name that PostgreSQL would give the sequence of a serial column: table_column_seq, cut to length, with a number if taken';

-- The gate: what can be said of the table and the column alone. Rights come first.
CREATE FUNCTION snowflake_attach_column(tbl regclass, column_name name) RETURNS pg_catalog.pg_attribute
    LANGUAGE plpgsql STABLE CALLED ON NULL INPUT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    rel pg_class;
    col pg_attribute;
    parent regclass;
    described text;
BEGIN
    IF tbl IS NULL OR column_name IS NULL THEN
        RAISE EXCEPTION 'table and column of snowflake_attach() must not be null' USING
            ERRCODE = 'null_value_not_allowed',
            HINT = 'SELECT snowflake_attach(''schema.table'', ''column'');';
    END IF;
    SELECT * INTO rel FROM pg_class AS c WHERE c.oid = tbl;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'table with OID % does not exist', tbl::oid USING
            ERRCODE = 'undefined_table',
            HINT = 'Give a table by its name: ''schema.table''::regclass.';
    END IF;
    described := pg_describe_object('pg_class'::regclass, tbl, 0);

    -- Who may not change the table learns nothing else about it.
    IF NOT pg_has_role(rel.relowner, 'USAGE') THEN
        RAISE EXCEPTION 'must be owner of %', described USING
            ERRCODE = 'insufficient_privilege',
            HINT = format('It belongs to %s: SET ROLE %1$s; if you are a member of that role.', rel.relowner::regrole);
    END IF;

    IF rel.relkind NOT IN ('r', 'p') THEN
        RAISE EXCEPTION 'cannot attach %', described USING
            ERRCODE = 'wrong_object_type',
            DETAIL = 'Only the column of a table can be given a sequence.',
            HINT = 'Attach the table that holds the rows.';
    END IF;
    IF rel.relnamespace IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace) THEN
        RAISE EXCEPTION 'cannot attach %', described USING
            ERRCODE = 'wrong_object_type',
            DETAIL = 'It is a system catalogue.',
            HINT = 'Attach a table of your own.';
    END IF;

    SELECT * INTO col FROM pg_attribute AS a
    WHERE a.attrelid = tbl AND a.attname = column_name AND a.attnum > 0 AND NOT a.attisdropped;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'column % of table % does not exist', quote_ident(column_name), tbl USING
            ERRCODE = 'undefined_column',
            HINT = format('Its columns of whole numbers: %s.',
                          (SELECT coalesce(string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum), 'none')
                           FROM pg_attribute AS a
                           WHERE a.attrelid = tbl AND a.attnum > 0 AND NOT a.attisdropped
                             AND a.atttypid IN ('bigint'::regtype, 'integer'::regtype, 'smallint'::regtype)));
    END IF;

    -- One sequence and one type for a whole tree of tables: only its root can be given them.
    IF rel.relispartition OR col.attinhcount > 0 THEN
        SELECT i.inhparent INTO parent FROM pg_inherits AS i
        JOIN pg_attribute AS a ON a.attrelid = i.inhparent AND a.attname = column_name
        WHERE i.inhrelid = tbl ORDER BY i.inhseqno LIMIT 1;
        parent := coalesce(pg_partition_root(tbl), parent);
        RAISE EXCEPTION 'column % of table % is that of its parent %', quote_ident(column_name), tbl, parent USING
            ERRCODE = 'wrong_object_type',
            DETAIL = CASE WHEN rel.relispartition THEN format('%s is a partition of %s.', tbl, parent)
                          ELSE format('%s inherits from %s.', tbl, parent) END,
            HINT = format('Attach the parent, and all below it with it: SELECT snowflake_attach(%L, %L);', parent, column_name);
    END IF;

    IF col.attgenerated <> '' THEN
        RAISE EXCEPTION 'column % of table % is a generated column', quote_ident(column_name), tbl USING
            ERRCODE = 'generated_always',
            DETAIL = 'A generated column has no DEFAULT.',
            HINT = CASE col.attgenerated WHEN 's' THEN format('ALTER TABLE %s ALTER COLUMN %I DROP EXPRESSION;', tbl, column_name)
                                         ELSE 'Choose another column.' END;
    END IF;
    -- A domain has the output function of what it is over: over bigint it can stay, over less not.
    IF NOT (col.atttypid IN ('integer'::regtype, 'smallint'::regtype)
            OR EXISTS (SELECT FROM pg_type AS t WHERE t.oid = col.atttypid AND t.typoutput = 'int8out'::regproc)) THEN
        RAISE EXCEPTION 'column % of table % is of type %', quote_ident(column_name), tbl, format_type(col.atttypid, col.atttypmod) USING
            ERRCODE = 'datatype_mismatch',
            DETAIL = 'An ID is a bigint; integer and smallint columns are made bigint.',
            HINT = format('If it holds whole numbers: ALTER TABLE %s ALTER COLUMN %I TYPE bigint USING %2$I::bigint;', tbl, column_name);
    END IF;
    IF rel.reloftype <> 0 AND col.atttypid IN ('integer'::regtype, 'smallint'::regtype) THEN
        RAISE EXCEPTION 'cannot make column % of typed table % a bigint', quote_ident(column_name), tbl USING
            ERRCODE = 'wrong_object_type',
            DETAIL = format('The column is of the composite type %s.', rel.reloftype::regtype),
            HINT = format('ALTER TYPE %s ALTER ATTRIBUTE %I TYPE bigint CASCADE;', rel.reloftype::regtype, column_name);
    END IF;
    RETURN col;
END;
$$;
COMMENT ON FUNCTION snowflake_attach_column(regclass, name) IS
    'the column that snowflake_attach() is to work on; an error if the caller may not, or if the table or the column can have no IDs';

-- is_attached: the column itself, in its table and in all below it; they get the DEFAULT.
-- is_narrow: a column, attached or referring, that cannot hold an ID yet; it gets another type.
-- A column that can be reached from two roots has a row for each.
CREATE FUNCTION snowflake_attach_scope(
        tbl regclass, attnum smallint,
        OUT root regclass, OUT member regclass, OUT member_attnum smallint, OUT member_column name,
        OUT is_attached boolean, OUT is_narrow boolean) RETURNS SETOF record
    LANGUAGE sql STABLE STRICT PARALLEL SAFE ROWS 10
    SET search_path = pg_catalog, pg_temp
AS $$
-- From the column along its table's inheritance tree and along foreign keys towards those who refer
-- to it, until nothing is added. A column that is wide already may lie between two that are not.
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
       y.typoutput IN ('int4out'::regproc, 'int2out'::regproc) -- domains included, see above
FROM tree AS t
JOIN pg_attribute AS a ON a.attrelid = t.attrelid AND a.attnum = t.attnum
JOIN pg_type AS y ON y.oid = a.atttypid
$$;
COMMENT ON FUNCTION snowflake_attach_scope(regclass, smallint) IS
    'the columns that snowflake_attach() reaches: the column itself, in children and partitions, and those that refer to it by foreign keys';

CREATE FUNCTION snowflake_attach_obstacles(tbl regclass, attnum smallint) RETURNS SETOF text
    LANGUAGE sql STABLE STRICT PARALLEL SAFE ROWS 1
    SET search_path = pg_catalog, pg_temp
AS $$
-- What ALTER TABLE would refuse one by one, some of it after an hour of rewriting: see
-- ATPrepAlterColumnType() and ATExecAlterColumnType() in PostgreSQL's tablecmds.c. Depending objects
-- of a kind that is not known to be rebuilt count as in the way, so that a later version's are told.
WITH RECURSIVE scope AS MATERIALIZED (
    SELECT s.*, pg_describe_object('pg_class'::regclass, s.member, s.member_attnum) AS described
    FROM @extschema@.snowflake_attach_scope($1, $2) AS s
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
-- Rebuilt by ALTER TABLE: indexes, constraints, statistics, the column's own DEFAULT. Nothing else.
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
SELECT format('%s holds rows of table %s', pg_describe_object('pg_class'::regclass, d.objid, d.objsubid), r.member)
FROM row_types AS r
JOIN pg_depend AS d ON d.refclassid = 'pg_type'::regclass AND d.refobjid = r.type
                   AND d.classid = 'pg_class'::regclass AND d.objsubid > 0
JOIN pg_class AS c ON c.oid = d.objid AND c.relkind IN ('r', 'p', 'm')
UNION
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
-- A child has an identity of its own, or somebody else draws from the identity's sequence.
SELECT CASE WHEN u.objid IS NULL THEN format('%s is an identity column', s.described)
            ELSE format('%s depends on %s', pg_describe_object(u.classid, u.objid, u.objsubid), pg_describe_object(d.classid, d.objid, 0)) END
FROM scope AS s
JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = s.member AND d.refobjsubid = s.member_attnum
                   AND d.classid = 'pg_class'::regclass AND d.deptype = 'i'
JOIN pg_class AS q ON q.oid = d.objid AND q.relkind = 'S'
LEFT JOIN pg_depend AS u ON u.refclassid = 'pg_class'::regclass AND u.refobjid = q.oid AND u.deptype = 'n'
WHERE s.is_attached AND (u.objid IS NOT NULL OR s.member <> s.root)
$$;
COMMENT ON FUNCTION snowflake_attach_obstacles(regclass, smallint) IS
    'what stands in the way of snowflake_attach(), one line each; no rows: nothing';

CREATE FUNCTION snowflake_attach_shard(
        tbl regclass, column_name name, given integer, OUT shard integer, OUT epoch_ms bigint)
    LANGUAGE plpgsql VOLATILE CALLED ON NULL INPUT PARALLEL RESTRICTED
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    default_epoch CONSTANT bigint := 1314220021721;
    schema name;
    is_temporary boolean;
    shards integer[];
    epochs bigint[];
BEGIN
    SELECT n.nspname, c.relpersistence = 't' INTO STRICT schema, is_temporary
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE c.oid = tbl;

    -- The schema's function stands for the schema, its columns where there is none; and before both,
    -- whatever there is of the shard that was asked for.
    SELECT array_agg(DISTINCT v.shard), array_agg(DISTINCT v.epoch_ms) FILTER (WHERE v.epoch_ms IS NOT NULL)
    INTO shards, epochs
    FROM (SELECT s.shard, s.epoch_ms, rank() OVER (ORDER BY given <> s.shard, s.function IS NULL) AS choice
          FROM @extschema@.snowflake_shards AS s WHERE s.schema_name = schema) AS v
    WHERE v.choice = 1;

    IF cardinality(epochs) > 1 THEN
        RAISE EXCEPTION 'schema % has more than one epoch', quote_ident(schema) USING
            ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = format('It makes IDs of shard %s with epoch_ms %s.', array_to_string(shards, ', '), array_to_string(epochs, ', ')),
            HINT = format('Set the DEFAULT by hand: ALTER TABLE %s ALTER COLUMN %I SET DEFAULT snowflake_next_id(%s, sequence, epoch_ms);',
                          tbl, column_name, coalesce(given, shards[1]));
    ELSIF given IS NULL AND cardinality(shards) > 1 THEN
        RAISE EXCEPTION 'schema % has more than one shard', quote_ident(schema) USING
            ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = format('It makes IDs of the shards %s.', array_to_string(shards, ', ')),
            HINT = format('Say which: SELECT snowflake_attach(%L, %L, shard => %s);', tbl, column_name, shards[1]);
    ELSIF given IS NULL AND shards IS NULL THEN
        RAISE EXCEPTION 'schema % has no shard', quote_ident(schema) USING
            ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = 'Nothing in it makes IDs yet.',
            HINT = format('With n from 0 to 8191: SELECT snowflake_attach(%L, %L, shard => n);', tbl, column_name)
                   || CASE WHEN is_temporary THEN '' ELSE format(' or, for the schema, SELECT snowflake_create_shard(n, %L);', schema) END;
    END IF;
    shard := coalesce(given, shards[1]);
    epoch_ms := coalesce(epochs[1], default_epoch);
END;
$$;
COMMENT ON FUNCTION snowflake_attach_shard(regclass, name, integer) IS
    'shard and epoch for a new column: those of its schema''s function next_id(), or else of the schema''s columns; a shard that is given goes before the schema''s';

CREATE FUNCTION snowflake_attach_old_sequence(tbl regclass, attnum smallint, OUT seq regclass, OUT sharers text)
    LANGUAGE sql STABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
WITH own_defaults AS (
    SELECT f.oid, s.member = $1 AND s.member_attnum = $2 AS is_first
    FROM @extschema@.snowflake_attach_scope($1, $2) AS s
    JOIN pg_attrdef AS f ON f.adrelid = s.member AND f.adnum = s.member_attnum
    WHERE s.is_attached
)
SELECT o.objid,
       (SELECT string_agg(pg_describe_object(u.classid, u.objid, u.objsubid), ', ' ORDER BY u.classid, u.objid)
        FROM pg_depend AS u
        WHERE u.refclassid = 'pg_class'::regclass AND u.refobjid = o.objid AND u.deptype = 'n'
          AND NOT (u.classid = 'pg_attrdef'::regclass AND u.objid IN (SELECT d.oid FROM own_defaults AS d)))
FROM pg_depend AS o
JOIN pg_class AS c ON c.oid = o.objid AND c.relkind = 'S'
WHERE o.refclassid = 'pg_class'::regclass AND o.refobjid = $1 AND o.refobjsubid = $2
  AND o.classid = 'pg_class'::regclass AND o.deptype = 'a'
-- Should the column own several: the one that its DEFAULT draws from.
ORDER BY EXISTS (SELECT FROM pg_depend AS u JOIN own_defaults AS d ON d.oid = u.objid AND d.is_first
                 WHERE u.classid = 'pg_attrdef'::regclass AND u.refclassid = 'pg_class'::regclass AND u.refobjid = o.objid) DESC,
         o.objid
LIMIT 1
$$;
COMMENT ON FUNCTION snowflake_attach_old_sequence(regclass, smallint) IS
    'the sequence that a column owns, as a serial column does, and what else draws from it';

CREATE FUNCTION snowflake_attach_new_sequence(tbl regclass, column_name name) RETURNS regclass
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    rel pg_class;
    identity_acl aclitem[];
    sequence regclass;
    sequence_name name;
    granted record;
BEGIN
    SELECT * INTO STRICT rel FROM pg_class AS c WHERE c.oid = tbl;

    -- An identity's sequence cannot outlive it; it goes first, so that its name is free again.
    SELECT c.relacl INTO identity_acl
    FROM pg_attribute AS a
    JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = tbl AND d.refobjsubid = a.attnum
                       AND d.classid = 'pg_class'::regclass AND d.deptype = 'i'
    JOIN pg_class AS c ON c.oid = d.objid AND c.relkind = 'S'
    WHERE a.attrelid = tbl AND a.attname = column_name;
    IF FOUND THEN
        EXECUTE format('ALTER TABLE %s ALTER COLUMN %I DROP IDENTITY', tbl, column_name);
    END IF;

    -- A sequence has the owner of the table that owns it, and is lost in a crash only where that is.
    sequence_name := @extschema@.snowflake_attach_sequence_name(rel.relnamespace, rel.relname, column_name);
    EXECUTE format('CREATE %s SEQUENCE %s.%I AS bigint',
                   CASE rel.relpersistence WHEN 'u' THEN 'UNLOGGED' END, -- a temporary one is by its schema
                   rel.relnamespace::regnamespace, sequence_name);
    sequence := format('%s.%I', rel.relnamespace::regnamespace, sequence_name)::regclass;
    IF rel.relowner <> quote_ident(current_user)::regrole THEN
        EXECUTE format('ALTER SEQUENCE %s OWNER TO %s', sequence, rel.relowner::regrole);
    END IF;
    EXECUTE format('ALTER SEQUENCE %s OWNED BY %s.%I', sequence, tbl, column_name);

    FOR granted IN
        SELECT g.privilege_type, g.is_grantable, CASE WHEN g.grantee = 0 THEN 'PUBLIC' ELSE g.grantee::regrole::text END AS grantee
        FROM aclexplode(identity_acl) AS g WHERE g.grantee <> rel.relowner
    LOOP
        EXECUTE format('GRANT %s ON SEQUENCE %s TO %s%s', granted.privilege_type, sequence, granted.grantee,
                       CASE WHEN granted.is_grantable THEN ' WITH GRANT OPTION' END);
    END LOOP;
    RETURN sequence;
END;
$$;
COMMENT ON FUNCTION snowflake_attach_new_sequence(regclass, name) IS
    'makes the sequence of a column that has none, or an identity, whose privileges it takes over';

CREATE FUNCTION snowflake_attach_inserters(tbl regclass, attnum smallint, seq regclass) RETURNS text
    LANGUAGE sql STABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
-- Into the table, its partitions or children, or a view on any of them: the DEFAULT is computed with
-- the rights of whoever inserts.
WITH RECURSIVE targets AS (
    SELECT s.member::oid AS relid FROM @extschema@.snowflake_attach_scope($1, $2) AS s WHERE s.is_attached
    UNION
    SELECT v.oid
    FROM targets AS t
    JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = t.relid AND d.classid = 'pg_rewrite'::regclass
    JOIN pg_rewrite AS w ON w.oid = d.objid
    JOIN pg_class AS v ON v.oid = w.ev_class AND v.relkind = 'v'
), acls AS (
    SELECT c.relowner, c.relacl AS acl FROM targets AS t JOIN pg_class AS c ON c.oid = t.relid
    UNION ALL
    SELECT 0, a.attacl FROM targets AS t JOIN pg_attribute AS a ON a.attrelid = t.relid
), grantees AS (
    SELECT g.grantee FROM acls CROSS JOIN LATERAL aclexplode(acls.acl) AS g WHERE g.privilege_type = 'INSERT'
    UNION
    SELECT acls.relowner FROM acls WHERE acls.relowner <> 0
)
SELECT string_agg(CASE WHEN g.grantee = 0 THEN 'PUBLIC' ELSE g.grantee::regrole::text END, ', ' ORDER BY g.grantee::regrole::text COLLATE "C")
FROM grantees AS g
-- Either of the two lets a role draw; a role may have it by membership.
WHERE NOT CASE WHEN g.grantee = 0 THEN has_sequence_privilege('public', $3, 'USAGE, UPDATE')
               ELSE has_sequence_privilege(g.grantee, $3, 'USAGE, UPDATE') END
$$;
COMMENT ON FUNCTION snowflake_attach_inserters(regclass, smallint, regclass) IS
    'the roles that may INSERT into a table but not draw from its sequence; NULL: none';

-- snowflake_attach('schema.table' [, 'column' [, shard 0..8191]])
--
--   42501  not the owner of the table, or of one that refers to it; no right to make the sequence
--   42809  a view, a foreign table, a system catalogue, a partition, an inherited column
--   42703, 42804, 428C9   no such column; not bigint, integer or smallint; a generated column
--   55000  no shard; attached with another one; something in the way, listed; a value so large that
--          new IDs would not be above it within snowflake.max_drift
--   42710, 22003          the shard is another schema's; is none
--   23502, 25001, 25006   NULLs in the column; isolation above READ COMMITTED; read-only
--
-- Progress is told by NOTICEs: the size before each rewriting, the time after it.
CREATE FUNCTION snowflake_attach(tbl regclass, column_name name DEFAULT 'id', shard integer DEFAULT NULL) RETURNS void
    LANGUAGE plpgsql VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE
    SET search_path = pg_catalog, pg_temp
    SET row_security = off -- a row that a policy hides has an ID, too: better an error than a lower maximum
AS $$
DECLARE
    native CONSTANT text := '@extschema@.snowflake_next_id';
    given CONSTANT integer := shard;
    rel pg_class;
    col pg_attribute;
    described text; -- the column, for messages
    present record; -- the native call that the column has already
    target record;  -- the shard and the epoch that it gets
    claimed record;
    old record;     -- the sequence that it owns, and what else uses that
    sequence regclass;
    listed text;
    largest bigint;
    nulls bigint;
    lead bigint;
    max_drift bigint;
    max_lead bigint;
    step record;
    started timestamptz;
BEGIN
    -- Everything is looked at twice, before and under the locks: what is refused need not wait for
    -- them, and what another session did while we waited is seen.
    LOOP
        col := @extschema@.snowflake_attach_column(tbl, column_name);
        SELECT * INTO rel FROM pg_class AS c WHERE c.oid = tbl;
        described := format('column %I of table %s', column_name, tbl);

        -- With a snapshot older than the locks, neither catalogue nor max() would tell the truth.
        IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
            RAISE EXCEPTION 'snowflake_attach() cannot run in a % transaction', upper(current_setting('transaction_isolation')) USING
                ERRCODE = 'active_sql_transaction',
                DETAIL = 'It must see what others commit until it has locked the table.',
                HINT = format('BEGIN ISOLATION LEVEL READ COMMITTED; SELECT snowflake_attach(%L, %L); COMMIT;', tbl, column_name);
        END IF;

        SELECT * INTO present FROM @extschema@.snowflake_call_of('pg_class'::regclass, tbl, col.attnum) AS k;
        IF FOUND AND col.atttypid NOT IN ('integer'::regtype, 'smallint'::regtype) THEN
            IF given IS NOT NULL AND given IS DISTINCT FROM present.shard THEN
                RAISE EXCEPTION '% is attached already, with %', described,
                                coalesce('shard ' || present.shard, 'a shard that is no constant') USING
                    ERRCODE = 'object_not_in_prerequisite_state',
                    DETAIL = format('Asked for is shard %s.', given),
                    HINT = format('To change it: ALTER TABLE %1$s ALTER COLUMN %2$I DROP DEFAULT; SELECT snowflake_attach(%1$L, %2$L, %3$s);',
                                  tbl, column_name, given);
            END IF;
            RAISE NOTICE '% is attached already: %, sequence %', described,
                coalesce('shard ' || present.shard, 'a shard that is no constant'),
                coalesce(present.seq::regclass::text, 'none that is constant') || coalesce(', through ' || present.function::regprocedure, '');
            RETURN;
        END IF;

        SELECT * INTO old FROM @extschema@.snowflake_attach_old_sequence(tbl, col.attnum) AS o;
        -- A serial column's sequence is used on, unless others draw from it: they want serial numbers.
        sequence := CASE WHEN old.sharers IS NULL THEN old.seq END;
        IF sequence IS NULL AND NOT has_schema_privilege(rel.relnamespace, 'CREATE') THEN
            RAISE EXCEPTION 'permission denied for schema %', rel.relnamespace::regnamespace USING
                ERRCODE = 'insufficient_privilege',
                DETAIL = format('The sequence of %s is to be made in it.', described),
                HINT = format('GRANT CREATE ON SCHEMA %s TO %I;', rel.relnamespace::regnamespace, current_user);
        END IF;

        SELECT string_agg(DISTINCT format('table %s belongs to %s', s.member, c.relowner::regrole) COLLATE "C", E'\n') INTO listed
        FROM @extschema@.snowflake_attach_scope(tbl, col.attnum) AS s JOIN pg_class AS c ON c.oid = s.member
        WHERE (s.is_attached OR s.is_narrow) AND NOT pg_has_role(c.relowner, 'USAGE');
        IF listed IS NOT NULL THEN
            RAISE EXCEPTION 'must be owner of every table that is to be changed with %', described USING
                ERRCODE = 'insufficient_privilege', DETAIL = listed,
                HINT = 'A role that is a member of all these owners, or a superuser, can attach it.';
        END IF;

        SELECT string_agg(o.line, E'\n' ORDER BY o.line COLLATE "C") INTO listed
        FROM @extschema@.snowflake_attach_obstacles(tbl, col.attnum) AS o(line);
        IF listed IS NOT NULL THEN
            RAISE EXCEPTION 'cannot attach %', described USING
                ERRCODE = 'object_not_in_prerequisite_state', DETAIL = listed,
                HINT = 'Drop what stands in the way, and make it again after snowflake_attach() in the same transaction.';
        END IF;

        -- The number first, then the tables: whoever holds a table waits for nothing but tables.
        SELECT a.shard, a.epoch_ms, rel.relnamespace INTO target
        FROM @extschema@.snowflake_attach_shard(tbl, column_name, given) AS a;
        IF claimed IS DISTINCT FROM target THEN
            PERFORM @extschema@.snowflake_claim_shard(target.shard, n.nspname) FROM pg_namespace AS n WHERE n.oid = rel.relnamespace;
            claimed := target;
        END IF;

        -- By OID, so that no two sessions wait for each other. The other ends of foreign keys are
        -- locked by ALTER TABLE, which needs no privilege for that; LOCK does. What counts is what is
        -- held, not what was named: a table may have been renamed in between.
        SELECT string_agg(format('ONLY %s', c.oid::regclass), ', ' ORDER BY c.oid) INTO listed
        FROM (SELECT s.member::oid FROM @extschema@.snowflake_attach_scope(tbl, col.attnum) AS s WHERE s.is_attached OR s.is_narrow
              UNION
              SELECT e.relid
              FROM @extschema@.snowflake_attach_scope(tbl, col.attnum) AS s
              JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = s.member
                                 AND d.refobjsubid = s.member_attnum AND d.classid = 'pg_constraint'::regclass
              JOIN pg_constraint AS f ON f.oid = d.objid AND f.contype = 'f'
              CROSS JOIN LATERAL (VALUES (f.conrelid), (f.confrelid)) AS e(relid)
              WHERE s.is_narrow AND has_table_privilege(e.relid, 'UPDATE, DELETE, TRUNCATE')) AS l(relid)
        JOIN pg_class AS c ON c.oid = l.relid AND c.relkind IN ('r', 'p')
        WHERE c.oid NOT IN (SELECT k.relation FROM pg_locks AS k
                            WHERE k.pid = pg_backend_pid() AND k.locktype = 'relation' AND k.mode = 'AccessExclusiveLock' AND k.granted
                              AND k.database = (SELECT b.oid FROM pg_database AS b WHERE b.datname = current_database()));
        EXIT WHEN listed IS NULL;
        EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', listed);
    END LOOP;

    -- The largest ID of all children and partitions. An index finds it, unless there are NULLs to count.
    EXECUTE format('SELECT max(%1$I)::bigint, %2$s FROM %3$s', column_name,
                   CASE WHEN col.attnotnull THEN '0' ELSE format('count(*) FILTER (WHERE %I IS NULL)', column_name) END, tbl)
    INTO largest, nulls;
    IF nulls > 0 THEN
        RAISE EXCEPTION '% contains null values', described USING
            ERRCODE = 'not_null_violation',
            DETAIL = format('%s rows have no ID.', nulls),
            HINT = format('Give them one, or delete them: DELETE FROM %s WHERE %I IS NULL;', tbl, column_name);
    END IF;
    SELECT min(p.setting::bigint) FILTER (WHERE p.name = 'snowflake.max_drift'),
           min(p.setting::bigint) FILTER (WHERE p.name = 'snowflake.max_lead')
    INTO max_drift, max_lead FROM pg_settings AS p;
    lead := (largest >> 23) + target.epoch_ms - floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint;
    IF largest > 0 AND max_drift >= 0 AND lead > greatest(max_drift, max_lead) THEN
        RAISE EXCEPTION '% holds %: new IDs cannot be above that', described, largest USING
            ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = format('Read as an ID it is of a time %s ms from now; snowflake.max_drift is %s ms.', lead, max_drift),
            HINT = format('Give other numbers to the rows of SELECT * FROM %s WHERE %I > snowflake_max_id(now(), %s);', tbl, column_name, target.epoch_ms);
    END IF;

    -- Said before it is gone. A child has its parent's DEFAULT, or one of its own.
    FOR step IN
        SELECT s.member, pg_get_expr(f.adbin, f.adrelid) AS expression
        FROM @extschema@.snowflake_attach_scope(tbl, col.attnum) AS s
        JOIN pg_attrdef AS f ON f.adrelid = s.member AND f.adnum = s.member_attnum
        LEFT JOIN pg_attrdef AS r ON r.adrelid = tbl AND r.adnum = col.attnum
        WHERE s.is_attached
          AND (s.member = tbl OR pg_get_expr(f.adbin, f.adrelid) IS DISTINCT FROM pg_get_expr(r.adbin, r.adrelid))
          AND NOT EXISTS (SELECT FROM pg_depend AS d WHERE d.classid = 'pg_attrdef'::regclass AND d.objid = f.oid
                          AND d.refclassid = 'pg_class'::regclass AND d.refobjid = sequence)
        ORDER BY s.member
    LOOP
        RAISE NOTICE 'column % of table % had DEFAULT %', quote_ident(column_name), step.member, step.expression;
    END LOOP;
    IF old.sharers IS NOT NULL THEN
        RAISE NOTICE 'sequence % stays as it is, because of %', old.seq, old.sharers;
    END IF;

    -- Privileges of a serial column's sequence stay as they are. A new one may be drawn from by all who
    -- may insert: from an identity they could, and without the right their INSERTs would fail.
    IF sequence IS NOT NULL THEN
        EXECUTE format('ALTER SEQUENCE %s AS bigint INCREMENT BY 1 NO MAXVALUE', sequence);
        listed := @extschema@.snowflake_attach_inserters(tbl, col.attnum, sequence);
        IF listed IS NOT NULL THEN
            RAISE NOTICE 'sequence % may not be used by % who may INSERT into %', sequence, listed, tbl USING
                HINT = format('GRANT USAGE ON SEQUENCE %s TO %s;', sequence, listed);
        END IF;
    ELSE
        sequence := @extschema@.snowflake_attach_new_sequence(tbl, column_name);
        listed := @extschema@.snowflake_attach_inserters(tbl, col.attnum, sequence);
        IF listed IS NOT NULL THEN
            EXECUTE format('GRANT USAGE ON SEQUENCE %s TO %s', sequence, listed);
            RAISE NOTICE 'USAGE on sequence % is granted to % who may INSERT into %', sequence, listed, tbl;
        END IF;
    END IF;
    IF largest >= 0 THEN
        PERFORM @extschema@.snowflake_advance(sequence, largest, target.epoch_ms);
    END IF;

    -- One ALTER TABLE for each tree of tables, so that each table is written once.
    FOR step IN
        WITH scope AS MATERIALIZED (SELECT * FROM @extschema@.snowflake_attach_scope(tbl, col.attnum))
        SELECT s.root,
               string_agg(DISTINCT format('ALTER COLUMN %I TYPE bigint', s.member_column), ', ') FILTER (WHERE s.is_narrow) AS widening,
               (SELECT format('%s%s, %s', CASE WHEN count(*) > 1 THEN format('%s tables, ', count(*)) END, pg_size_pretty(sum(pg_table_size(c.oid))),
                              CASE WHEN min(c.reltuples) < 0 THEN 'never analyzed' ELSE format('about %s rows', sum(c.reltuples)::bigint) END)
                FROM pg_class AS c
                WHERE c.relkind = 'r' AND c.oid IN (SELECT m.member FROM scope AS m WHERE m.root = s.root AND m.is_narrow)) AS size
        FROM scope AS s
        WHERE s.is_attached OR s.is_narrow
        GROUP BY s.root
        ORDER BY s.root
    LOOP
        started := clock_timestamp();
        IF step.widening IS NOT NULL THEN
            RAISE NOTICE 'rewriting table %: %', step.root, step.size;
        END IF;
        EXECUTE format('ALTER TABLE %s %s', step.root,
                       concat_ws(', ', step.widening,
                                 CASE WHEN step.root = tbl THEN
                                     format('ALTER COLUMN %1$I SET NOT NULL, ALTER COLUMN %1$I SET DEFAULT %2$s(%3$s, %4$L::regclass%5$s)',
                                            column_name, native, target.shard, sequence,
                                            CASE WHEN target.epoch_ms <> 1314220021721 THEN format(', %L::bigint', target.epoch_ms) END) END));
        IF step.widening IS NOT NULL THEN
            RAISE NOTICE 'table % rewritten in % s', step.root, round(extract(epoch FROM clock_timestamp() - started), 1) USING
                HINT = format('ANALYZE %s; what was known of the column is of the old type.', step.root);
        END IF;
    END LOOP;
END;
$$;
COMMENT ON FUNCTION snowflake_attach(regclass, name, integer) IS
    'gives a column IDs of a shard, the schema''s by default: its own sequence, NOT NULL and DEFAULT snowflake_next_id(); serial, identity and integer columns are converted with their rows, and integer columns that refer to it with it';
