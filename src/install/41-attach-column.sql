-- Steps of snowflake_attach(): the column, its shard and its epoch.

-- The column that snowflake_attach() is to work on. Its errors are those that the table and the column alone decide.
CREATE FUNCTION snowflake_internal.attach_column(tbl regclass, column_name name) RETURNS pg_catalog.pg_attribute
    LANGUAGE plpgsql STABLE CALLED ON NULL INPUT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    described CONSTANT text := pg_describe_object('pg_class'::regclass, tbl, 0);
    rel pg_class;
    col pg_attribute;
BEGIN
    IF tbl IS NULL OR column_name IS NULL THEN
        RAISE EXCEPTION 'table and column of snowflake_attach() must not be null' USING
            ERRCODE = 'null_value_not_allowed',
            HINT = format('SELECT %ssnowflake_attach(''schema.table'', ''column'');', snowflake_internal.prefix());
    END IF;
    SELECT * INTO rel FROM pg_class AS c WHERE c.oid = tbl;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'table with OID % does not exist', tbl::oid USING ERRCODE = 'undefined_table',
            HINT = 'Give a table by its name: ''schema.table''::regclass.';
    END IF;

    -- The privilege comes first: a role without it gets no other error about the table.
    IF NOT pg_has_role(rel.relowner, 'USAGE') THEN
        RAISE EXCEPTION 'must be owner of %', described USING ERRCODE = 'insufficient_privilege',
            HINT = format('It belongs to %s: SET ROLE %1$s; if you are a member of that role.', rel.relowner::regrole);
    END IF;

    -- A view's column cannot own a sequence. The rows of a foreign table get their IDs on their own server.
    IF rel.relkind NOT IN ('r', 'p') THEN
        RAISE EXCEPTION 'cannot attach %', described USING ERRCODE = 'wrong_object_type',
            DETAIL = 'Only the column of a table can be given a sequence.',
            HINT = 'Attach the table that holds the rows.';
    END IF;
    IF rel.relnamespace IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace) THEN
        RAISE EXCEPTION 'cannot attach %', described USING ERRCODE = 'wrong_object_type',
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
    PERFORM snowflake_internal.attach_require_column(col);
    RETURN col;
END;
$$;

-- Refuses the column of a partition, one that is inherited, and one that is no bigint and cannot be made one.
CREATE FUNCTION snowflake_internal.attach_require_column(col pg_catalog.pg_attribute) RETURNS void
    LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    tbl CONSTANT regclass := col.attrelid;
    is_partition CONSTANT boolean := (SELECT c.relispartition FROM pg_class AS c WHERE c.oid = tbl);
    parent regclass;
BEGIN
    -- One sequence and one type for a whole tree of tables: they are given to its root.
    IF is_partition OR col.attinhcount > 0 THEN
        SELECT i.inhparent INTO parent FROM pg_inherits AS i
        JOIN pg_attribute AS a ON a.attrelid = i.inhparent AND a.attname = col.attname
        WHERE i.inhrelid = tbl ORDER BY i.inhseqno LIMIT 1;
        parent := coalesce(pg_partition_root(tbl), parent);
        RAISE EXCEPTION 'column % of table % is that of its parent %', quote_ident(col.attname), tbl, parent USING
            ERRCODE = 'wrong_object_type',
            DETAIL = format('%s %s %s.', tbl, CASE WHEN is_partition THEN 'is a partition of' ELSE 'inherits from' END, parent),
            HINT = format('Attach the parent, and all below it with it: SELECT %ssnowflake_attach(%L, %L);',
                          snowflake_internal.prefix(), parent, col.attname);
    ELSIF col.attgenerated <> '' THEN
        RAISE EXCEPTION 'column % of table % is a generated column', quote_ident(col.attname), tbl USING
            ERRCODE = 'generated_always',
            DETAIL = 'A generated column has no DEFAULT.',
            HINT = CASE col.attgenerated
                WHEN 's' THEN format('ALTER TABLE %s ALTER COLUMN %I DROP EXPRESSION;', tbl, col.attname)
                ELSE 'Choose another column.' END;
    -- A domain has the output function of its base type. A domain over bigint can stay, one over integer not.
    ELSIF NOT (col.atttypid IN ('integer'::regtype, 'smallint'::regtype) OR EXISTS (
                   SELECT FROM pg_type AS t WHERE t.oid = col.atttypid AND t.typoutput = 'int8out'::regproc)) THEN
        RAISE EXCEPTION 'column % of table % is of type %',
            quote_ident(col.attname), tbl, format_type(col.atttypid, col.atttypmod) USING ERRCODE = 'datatype_mismatch',
            DETAIL = 'An ID is a bigint; integer and smallint columns are made bigint.',
            HINT = format('If it holds whole numbers: ALTER TABLE %s ALTER COLUMN %I TYPE bigint USING %2$I::bigint;',
                          tbl, col.attname);
    END IF;
END;
$$;

-- Refuses a column that has its values from the column of another table.
-- Of one column only: with several, a column that is NULL for a new row leaves the key unchecked.
CREATE FUNCTION snowflake_internal.attach_require_own_ids(col pg_catalog.pg_attribute, shard integer, epoch_ms bigint)
    RETURNS void LANGUAGE plpgsql STABLE CALLED ON NULL INPUT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    key record;
BEGIN
    SELECT f.conname, a.attrelid::regclass AS tbl, a.attname, c.relnamespace = r.relnamespace AS is_near INTO key
    FROM pg_constraint AS f
    JOIN pg_attribute AS a ON a.attrelid = f.confrelid AND a.attnum = f.confkey[1]
    JOIN pg_class AS r ON r.oid = f.confrelid
    JOIN pg_class AS c ON c.oid = f.conrelid
    WHERE f.conrelid = col.attrelid AND f.contype = 'f' AND f.conparentid = 0 AND f.conkey = ARRAY[col.attnum]
      AND (f.confrelid, f.confkey[1]) <> (col.attrelid, col.attnum)
    ORDER BY f.conname COLLATE "C" LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'column % of table % refers to column % of table %',
            quote_ident(col.attname), col.attrelid::regclass, quote_ident(key.attname), key.tbl USING
            ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = format('A DEFAULT would make IDs that are not in table %s. Foreign key %I allows no others.',
                            key.tbl, key.conname),
            HINT = format('Attach the column that it refers to. That makes this one a bigint, too: '
                          'SELECT %ssnowflake_attach(%s);', snowflake_internal.prefix(),
                          snowflake_internal.attach_arguments(key.tbl, key.attname,
                                                              CASE WHEN key.is_near THEN shard END, NULL, epoch_ms));
    END IF;
END;
$$;

-- Shard and epoch for a new column: those given, or else those of its schema's function next_id(), or else of the
-- schema's columns; and the schema.
CREATE FUNCTION snowflake_internal.attach_shard(
        col pg_catalog.pg_attribute, given integer, given_epoch bigint,
        OUT shard integer, OUT epoch_ms bigint, OUT schema name)
    LANGUAGE plpgsql VOLATILE CALLED ON NULL INPUT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    tbl CONSTANT regclass := col.attrelid;
    is_temporary boolean;
    shards integer[];
    epochs bigint[];
BEGIN
    SELECT n.nspname, c.relpersistence = 't' INTO STRICT schema, is_temporary
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE c.oid = tbl;

    -- First the callers that make IDs of the given shard, then the schema's functions, then its columns.
    SELECT array_agg(DISTINCT v.shard), array_agg(DISTINCT v.epoch_ms) FILTER (WHERE v.epoch_ms IS NOT NULL)
    INTO shards, epochs
    FROM (SELECT s.shard, s.epoch_ms, rank() OVER (ORDER BY given <> s.shard, s.function IS NULL) AS choice
          FROM snowflake_internal.shards() AS s WHERE s.schema = (SELECT c.relnamespace FROM pg_class AS c WHERE c.oid = tbl)) AS v
    WHERE v.choice = 1;

    IF given_epoch IS NULL AND cardinality(epochs) > 1 THEN
        RAISE EXCEPTION 'schema % has more than one epoch', quote_ident(schema) USING
            ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = format('It makes IDs of shard %s with epoch_ms %s.', array_to_string(shards, ', '),
                            array_to_string(epochs, ', ')),
            HINT = format('Say which: SELECT %ssnowflake_attach(%s, epoch_ms => ...);', snowflake_internal.prefix(),
                          snowflake_internal.attach_arguments(tbl, col.attname, coalesce(given, shards[1]), NULL, NULL));
    ELSIF given IS NULL AND cardinality(shards) > 1 THEN
        RAISE EXCEPTION 'schema % has more than one shard', quote_ident(schema) USING
            ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = format('It makes IDs of the shards %s.', array_to_string(shards, ', ')),
            HINT = format('Say which: SELECT %ssnowflake_attach(%s);', snowflake_internal.prefix(),
                          snowflake_internal.attach_arguments(tbl, col.attname, shards[1], NULL, given_epoch));
    ELSIF given IS NULL AND shards IS NULL THEN
        RAISE EXCEPTION 'schema % has no shard', quote_ident(schema) USING ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = 'Nothing in it makes IDs yet.',
            HINT = format('With n from 0 to 8191: SELECT %1$ssnowflake_attach(%2$L, %3$L, shard => n);'
                          || CASE WHEN is_temporary THEN '' ELSE ' or, for the schema, SELECT %1$ssnowflake_create_shard(n, %4$L);' END,
                          snowflake_internal.prefix(), tbl, col.attname, schema);
    END IF;
    shard := coalesce(given, shards[1]);
    epoch_ms := coalesce(given_epoch, epochs[1], snowflake_internal.default_epoch());
    PERFORM snowflake_internal.encode(clock_timestamp(), 0, 0, epoch_ms); -- an error if no ID can be made now
END;
$$;

-- Refuses a column whose DEFAULT calls a function that is not native: the caller has to give the epoch of its IDs.
CREATE FUNCTION snowflake_internal.attach_require_known_epoch(
        scope snowflake_internal.attach_member[], shard integer, epoch_ms bigint, arguments text) RETURNS void
    LANGUAGE plpgsql STABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    old record;
BEGIN
    SELECT s.tbl, s.column_name, p.oid::regprocedure AS function,
           p.pronargs = 0 AND p.prorettype = 'bigint'::regtype AND NOT p.proretset AS is_adoptable
    INTO old
    FROM snowflake_internal.attach_old_defaults(scope) AS s
    -- The functions of PostgreSQL itself are not in pg_depend.
    JOIN pg_depend AS d ON d.classid = s.classid AND d.objid = s.objid AND d.refclassid = 'pg_proc'::regclass
    JOIN pg_proc AS p ON p.oid = d.refobjid
    WHERE NOT EXISTS (SELECT FROM snowflake_internal.call_of('pg_class'::regclass::oid, s.tbl::oid, s.attnum::integer))
    ORDER BY s.tbl <> scope[1].tbl, s.tbl::text COLLATE "C", p.pronargs, p.oid
    LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'the epoch of the IDs in column % of table % is not known',
            quote_ident(old.column_name), old.tbl USING
            ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = format('Its DEFAULT calls function %s, whose IDs may count from another epoch than %s. '
                            'IDs of two epochs in one column are not in order.',
                            old.function, epoch_ms),
            HINT = concat_ws(' ',
                CASE WHEN old.is_adoptable THEN
                    snowflake_internal.told_to((SELECT proowner FROM pg_proc WHERE oid = old.function),
                        format('SELECT %ssnowflake_adopt(%L, shard => %s) finds the epoch out, and makes the function native for '
                               'all columns that use it.', snowflake_internal.prefix(), old.function, shard)) END,
                format('To attach only this column, name the epoch of its IDs: '
                       'SELECT %ssnowflake_attach(%s, epoch_ms => ...);', snowflake_internal.prefix(), arguments));
    END IF;
END;
$$;
