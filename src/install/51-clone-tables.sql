-- Cloning a shard: its tables, with their names and settings, and its sequences.

CREATE FUNCTION snowflake_internal.clone_tables(template regnamespace, target regnamespace) RETURNS void
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    original record;
    copy regclass;
    attachments text := '';
BEGIN
    -- In the order they were made in.
    FOR original IN
        SELECT c.oid::regclass AS relation, c.relname AS name,
               CASE c.relpersistence WHEN 'u' THEN ' UNLOGGED' END AS unlogged,
               CASE WHEN c.relkind = 'p' THEN format(' PARTITION BY %s', pg_get_partkeydef(c.oid)) END AS partition_by,
               CASE WHEN m.amname IS NOT NULL THEN format(' USING %I', m.amname) END AS using_method,
               (SELECT format(' WITH (%s)', string_agg(option, ', '))
                FROM (SELECT format('%I = %L', o.option_name, o.option_value)
                      FROM pg_options_to_table(c.reloptions) AS o
                      UNION ALL
                      SELECT format('toast.%I = %L', o.option_name, o.option_value)
                      FROM pg_class AS t, pg_options_to_table(t.reloptions) AS o
                      WHERE t.oid = c.reltoastrelid) AS options (option)
                HAVING count(*) > 0) AS with_options,
               CASE WHEN s.spcname IS NOT NULL THEN format(' TABLESPACE %I', s.spcname) END AS tablespace,
               p.relname AS parent,
               CASE WHEN p.oid IS NOT NULL THEN pg_get_expr(c.relpartbound, c.oid) END AS bound
        FROM pg_depend AS d
        JOIN pg_class AS c ON c.oid = d.objid
        LEFT JOIN pg_am AS m ON m.oid = c.relam
        LEFT JOIN pg_tablespace AS s ON s.oid = c.reltablespace
        LEFT JOIN pg_inherits AS h ON c.relispartition AND h.inhrelid = c.oid
        LEFT JOIN pg_class AS p ON p.oid = h.inhparent AND p.relnamespace = template
        WHERE d.refclassid = 'pg_namespace'::regclass AND d.refobjid = template AND d.classid = 'pg_class'::regclass
          AND c.relkind IN ('r', 'p')
          AND NOT EXISTS (SELECT FROM pg_depend AS e
                          WHERE e.classid = d.classid AND e.objid = d.objid AND e.deptype = 'e')
        ORDER BY c.oid
    LOOP
        EXECUTE format('CREATE%s TABLE %s.%I (LIKE %s INCLUDING ALL%s)%s%s%s%s',
                       original.unlogged, target, original.name, original.relation,
                       -- From 17 on a partition's identity is its parent's, and comes with being attached.
                       CASE WHEN original.parent IS NOT NULL
                                 AND current_setting('server_version_num')::integer >= 170000 THEN ' EXCLUDING IDENTITY' END,
                       original.partition_by, original.using_method, original.with_options, original.tablespace);
        copy := format('%s.%I', target, original.name);
        -- At once: a name that LIKE has chosen may be the next table's.
        PERFORM snowflake_internal.clone_names(original.relation, copy);
        PERFORM snowflake_internal.clone_settings(original.relation, copy);
        IF original.parent IS NOT NULL THEN
            attachments := format(E'%sALTER TABLE %s.%I ATTACH PARTITION %s %s;\n',
                                  attachments, target, original.parent, copy, original.bound);
        END IF;
    END LOOP;
    -- A partition is made as a table of its own, with its own order of columns, defaults and indexes;
    -- its parent then takes the indexes it finds for its own.
    EXECUTE attachments;
END;
$$;
COMMENT ON FUNCTION snowflake_internal.clone_tables(regnamespace, regnamespace) IS
    'step of snowflake_clone_shard(): the tables, with all that they are without other tables, sequences and functions; partitions attached';

CREATE FUNCTION snowflake_internal.clone_names(original regclass, copy regclass) RETURNS void
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    schema_id oid;
    originals oid[];
    copies oid[];
    part record;
    taken oid;
BEGIN
    SELECT c.relnamespace INTO schema_id FROM pg_class AS c WHERE c.oid = copy;

    -- LIKE names indexes by its own rules. It makes them in the order of the originals' OIDs, and the
    -- copies' OIDs count on from the table's, past the largest one to the smallest if need be.
    originals := ARRAY(SELECT i.indexrelid FROM pg_index AS i
                       WHERE i.indrelid = original AND i.indislive ORDER BY i.indexrelid);
    copies := ARRAY(SELECT i.indexrelid FROM pg_index AS i WHERE i.indrelid = copy
                    ORDER BY (i.indexrelid::bigint - copy::oid::bigint + (1::bigint << 32)) % (1::bigint << 32));
    -- An index that was being made meanwhile: then it is not known which copy is whose.
    IF cardinality(originals) <> cardinality(copies) THEN
        RAISE EXCEPTION 'indexes of table % changed while it was cloned', original USING
            ERRCODE = 'serialization_failure', HINT = 'Try again.';
    END IF;

    FOR part IN
        SELECT n.oid::regclass AS relation, o.relname AS name, n.relname <> o.relname AS is_misnamed,
               CASE WHEN ns.seqtypid <> os.seqtypid THEN os.seqtypid::regtype END AS sequence_type
        FROM (SELECT pair.old, pair.new FROM unnest(originals, copies) AS pair (old, new)
              UNION ALL
              -- identity sequences, by their columns
              SELECT od.objid, nd.objid
              FROM pg_depend AS od
              JOIN pg_attribute AS oa ON oa.attrelid = od.refobjid AND oa.attnum = od.refobjsubid
              JOIN pg_attribute AS na ON na.attrelid = copy AND na.attname = oa.attname
              JOIN pg_depend AS nd ON nd.refclassid = 'pg_class'::regclass AND nd.refobjid = na.attrelid
                                  AND nd.refobjsubid = na.attnum
              WHERE od.refclassid = 'pg_class'::regclass AND od.refobjid = original
                AND od.classid = 'pg_class'::regclass AND od.deptype = 'i' AND od.refobjsubid > 0
                AND nd.classid = 'pg_class'::regclass AND nd.deptype = 'i') AS pair
        JOIN pg_class AS o ON o.oid = pair.old
        JOIN pg_class AS n ON n.oid = pair.new
        LEFT JOIN pg_sequence AS os ON os.seqrelid = o.oid
        LEFT JOIN pg_sequence AS ns ON ns.seqrelid = n.oid
        WHERE n.relname <> o.relname OR ns.seqtypid <> os.seqtypid
    LOOP
        -- LIKE makes every identity sequence a bigint.
        IF part.sequence_type IS NOT NULL THEN
            EXECUTE format('ALTER SEQUENCE %s AS %s', part.relation, part.sequence_type);
        END IF;
        IF part.is_misnamed THEN
            -- Only a sibling whose turn is yet to come can have the name: all else has its final one.
            SELECT c.oid INTO taken FROM pg_class AS c WHERE c.relname = part.name AND c.relnamespace = schema_id;
            IF FOUND THEN
                EXECUTE format('ALTER TABLE %s RENAME TO %I', taken::regclass, gen_random_uuid());
            END IF;
            EXECUTE format('ALTER TABLE %s RENAME TO %I', part.relation, part.name);
        END IF;
    END LOOP;

    -- Extended statistics likewise; theirs are names of another kind.
    originals := ARRAY(SELECT s.oid FROM pg_statistic_ext AS s WHERE s.stxrelid = original ORDER BY s.oid);
    copies := ARRAY(SELECT s.oid FROM pg_statistic_ext AS s WHERE s.stxrelid = copy
                    ORDER BY (s.oid::bigint - copy::oid::bigint + (1::bigint << 32)) % (1::bigint << 32));
    FOR part IN
        SELECT n.oid, o.stxname AS name, o.stxstattarget AS target
        FROM unnest(originals, copies) AS pair (old, new)
        JOIN pg_statistic_ext AS o ON o.oid = pair.old
        JOIN pg_statistic_ext AS n ON n.oid = pair.new
    LOOP
        SELECT s.oid INTO taken FROM pg_statistic_ext AS s
        WHERE s.stxname = part.name AND s.stxnamespace = schema_id;
        IF taken IS DISTINCT FROM part.oid THEN
            IF taken IS NOT NULL THEN
                EXECUTE format('ALTER STATISTICS %s RENAME TO %I',
                               (pg_identify_object('pg_statistic_ext'::regclass, taken, 0)).identity, gen_random_uuid());
            END IF;
            EXECUTE format('ALTER STATISTICS %s RENAME TO %I',
                           (pg_identify_object('pg_statistic_ext'::regclass, part.oid, 0)).identity, part.name);
        END IF;
        IF part.target >= 0 THEN
            EXECUTE format('ALTER STATISTICS %s.%I SET STATISTICS %s', schema_id::regnamespace, part.name, part.target);
        END IF;
    END LOOP;
END;
$$;
COMMENT ON FUNCTION snowflake_internal.clone_names(regclass, regclass) IS
    'step of snowflake_clone_shard(): names of a table''s indexes, identity sequences and extended statistics, as the original''s';

CREATE FUNCTION snowflake_internal.clone_settings(original regclass, copy regclass) RETURNS void
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    changes text;
BEGIN
    SELECT string_agg(change, ', ') INTO changes
    FROM (
        SELECT format('ALTER COLUMN %I SET STATISTICS %s', a.attname, a.attstattarget) AS change
        FROM pg_attribute AS a
        WHERE a.attrelid = original AND a.attnum > 0 AND NOT a.attisdropped AND a.attstattarget >= 0
        UNION ALL
        SELECT format('ALTER COLUMN %I SET (%s)', a.attname,
                      string_agg(format('%I = %L', o.option_name, o.option_value), ', '))
        FROM pg_attribute AS a, pg_options_to_table(a.attoptions) AS o
        WHERE a.attrelid = original AND a.attnum > 0 AND NOT a.attisdropped
          -- The server keeps things of its own there, too.
          AND o.option_name IN ('n_distinct', 'n_distinct_inherited')
        GROUP BY a.attname
        UNION ALL
        SELECT format('CLUSTER ON %I', n.relname)
        FROM pg_index AS i JOIN pg_class AS n ON n.oid = i.indexrelid
        WHERE i.indrelid = original AND i.indisclustered
        UNION ALL
        SELECT format('REPLICA IDENTITY USING INDEX %I', n.relname)
        FROM pg_index AS i JOIN pg_class AS n ON n.oid = i.indexrelid
        WHERE i.indrelid = original AND i.indisreplident
        UNION ALL
        SELECT unnest(ARRAY[CASE c.relreplident WHEN 'f' THEN 'REPLICA IDENTITY FULL'
                                                WHEN 'n' THEN 'REPLICA IDENTITY NOTHING' END,
                            -- Without the policies, which are not copied, it lets only the owner in; without
                            -- it, whoever may read the table would see all its rows.
                            CASE WHEN c.relrowsecurity THEN 'ENABLE ROW LEVEL SECURITY' END,
                            CASE WHEN c.relforcerowsecurity THEN 'FORCE ROW LEVEL SECURITY' END,
                            CASE WHEN c.reloftype <> 0 THEN format('OF %s', c.reloftype::regtype) END])
        FROM pg_class AS c
        WHERE c.oid = original
    ) AS settings (change);
    IF changes IS NOT NULL THEN
        EXECUTE format('ALTER TABLE ONLY %s %s', copy, changes);
    END IF;

    -- Columns of indexes have no statistics target but for expressions.
    SELECT string_agg(format(E'ALTER INDEX %s.%I ALTER COLUMN %s SET STATISTICS %s;\n',
                             c.relnamespace::regnamespace, n.relname, a.attnum, a.attstattarget), '') INTO changes
    FROM pg_class AS c
    JOIN pg_index AS i ON i.indrelid = original
    JOIN pg_class AS n ON n.oid = i.indexrelid
    JOIN pg_attribute AS a ON a.attrelid = i.indexrelid AND a.attstattarget >= 0
    WHERE c.oid = copy;
    EXECUTE coalesce(changes, '');
END;
$$;
COMMENT ON FUNCTION snowflake_internal.clone_settings(regclass, regclass) IS
    'step of snowflake_clone_shard(): a table''s statistics targets, replica identity, clustering index, type and row security switches';

CREATE FUNCTION snowflake_internal.clone_sequences(template regnamespace, target regnamespace) RETURNS void
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    commands text;
BEGIN
    -- Identity sequences have come with their tables.
    SELECT string_agg(format(E'CREATE%s SEQUENCE %s.%I AS %s INCREMENT BY %s MINVALUE %s MAXVALUE %s '
                              'START WITH %s CACHE %s%s%s;\n',
                             CASE c.relpersistence WHEN 'u' THEN ' UNLOGGED' END, target, c.relname,
                             s.seqtypid::regtype, s.seqincrement, s.seqmin, s.seqmax, s.seqstart, s.seqcache,
                             CASE WHEN s.seqcycle THEN ' CYCLE' END,
                             CASE WHEN t.relkind IN ('r', 'p')
                                  THEN format(' OWNED BY %s.%I.%I', target, t.relname, a.attname) END),
                      '' ORDER BY c.oid) INTO commands
    FROM pg_depend AS d
    JOIN pg_class AS c ON c.oid = d.objid
    JOIN pg_sequence AS s ON s.seqrelid = c.oid
    LEFT JOIN pg_depend AS o ON o.classid = d.classid AND o.objid = d.objid AND o.refclassid = 'pg_class'::regclass
                            AND o.deptype IN ('a', 'i')
    LEFT JOIN pg_class AS t ON t.oid = o.refobjid
    LEFT JOIN pg_attribute AS a ON a.attrelid = o.refobjid AND a.attnum = o.refobjsubid
    WHERE d.refclassid = 'pg_namespace'::regclass AND d.refobjid = template AND d.classid = 'pg_class'::regclass
      AND c.relkind = 'S' AND o.deptype IS DISTINCT FROM 'i'
      AND NOT EXISTS (SELECT FROM pg_depend AS e
                      WHERE e.classid = d.classid AND e.objid = d.objid AND e.deptype = 'e');
    EXECUTE coalesce(commands, '');
END;
$$;
COMMENT ON FUNCTION snowflake_internal.clone_sequences(regnamespace, regnamespace) IS
    'step of snowflake_clone_shard(): the sequences, unused, with their parameters and owning columns';
