-- Steps of snowflake_attach(): what column it is, and which shard it gets.

-- The gate: what can be said of the table and the column alone, before shards, locks and others'
-- tables come into it. Rights come first. Asked again under the locks, so it is cheap: no row is read.
CREATE FUNCTION snowflake_internal.attach_column(tbl regclass, column_name name) RETURNS pg_catalog.pg_attribute
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

    -- A view has no column to be owned; a foreign table's rows are numbered where they are.
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

    -- It could be made an ordinary one, but whoever wrote the expression meant it.
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
    -- A bigint in a typed table is welcome; its type is its composite type's to change.
    IF rel.reloftype <> 0 AND col.atttypid IN ('integer'::regtype, 'smallint'::regtype) THEN
        RAISE EXCEPTION 'cannot make column % of typed table % a bigint', quote_ident(column_name), tbl USING
            ERRCODE = 'wrong_object_type',
            DETAIL = format('The column is of the composite type %s.', rel.reloftype::regtype),
            HINT = format('ALTER TYPE %s ALTER ATTRIBUTE %I TYPE bigint CASCADE;', rel.reloftype::regtype, column_name);
    END IF;
    RETURN col;
END;
$$;
COMMENT ON FUNCTION snowflake_internal.attach_column(regclass, name) IS
    'the column that snowflake_attach() is to work on; an error if the caller may not, or if the table or the column can have no IDs';

-- One shard and one epoch for a schema, or a decision to be made by somebody who knows.
CREATE FUNCTION snowflake_internal.attach_shard(
        tbl regclass, column_name name, given integer, OUT shard integer, OUT epoch_ms bigint)
    LANGUAGE plpgsql VOLATILE CALLED ON NULL INPUT PARALLEL RESTRICTED
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    default_epoch CONSTANT bigint := snowflake_internal.default_epoch();
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
COMMENT ON FUNCTION snowflake_internal.attach_shard(regclass, name, integer) IS
    'shard and epoch for a new column: those of its schema''s function next_id(), or else of the schema''s columns; a shard that is given goes before the schema''s';
