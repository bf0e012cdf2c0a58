-- Cloning a shard: what led to the template's sequences, functions and tables leads to the clone's.

CREATE FUNCTION snowflake_internal.clone_defaults(
        template regnamespace, target regnamespace, shard integer,
        old_relations oid[], new_relations oid[], old_functions oid[], new_functions oid[]) RETURNS void
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    own_path CONSTANT text := current_setting('search_path');
    template_path CONSTANT text := format('%s, pg_temp', template);
    clone_path CONSTANT text := format('%s, %s, pg_temp', target, template);
    col record;
    expression text;
    commands text := '';
    stuck_table oid;
    stuck_column smallint;
    is_hidden boolean := false;
BEGIN
    -- A default may use sequences and functions anywhere in its expression. Deparsed where the template
    -- is the search path, and parsed where the clone stands before the template, it finds the clone's,
    -- and the template's where the clone has none. No text is changed for that. While such a path holds
    -- nothing is done but that: any other query could find functions and operators of the template's.
    FOR col IN
        SELECT d.adrelid, d.adnum, d.adbin, a.attname AS name, pair.new::regclass AS copy,
               k.function, k.seq, k.epoch_ms, f.pronamespace = template AS is_of_template,
               k.function IS NULL AND k.shard IS NOT NULL AS is_direct,
               k.seq IS NOT NULL AND k.epoch_ms IS NOT NULL AND k.is_plain AS is_plain,
               b.is_bound
        FROM unnest(old_relations, new_relations) AS pair (old, new)
        JOIN pg_attrdef AS d ON d.adrelid = pair.old
        JOIN pg_attribute AS a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
        LEFT JOIN LATERAL snowflake_internal.call_of('pg_class'::regclass::oid, d.adrelid, d.adnum::integer) AS k ON true
        LEFT JOIN pg_proc AS f ON f.oid = k.function
        -- No EXISTS: the planner may choose to read all defaults of the database once for it.
        LEFT JOIN LATERAL (
            SELECT true FROM pg_depend AS u
            WHERE u.classid = 'pg_attrdef'::regclass AND u.objid = d.oid AND u.deptype = 'n'
              AND (u.refclassid = 'pg_class'::regclass AND u.refobjid = ANY (old_relations)
                   OR u.refclassid = 'pg_proc'::regclass AND u.refobjid = ANY (old_functions))
            LIMIT 1) AS b (is_bound) ON true
        WHERE a.attgenerated = ''
        ORDER BY pair.new, d.adnum
    LOOP
        IF col.is_direct AND NOT col.is_plain OR col.is_of_template AND col.function <> ALL (old_functions) THEN
            stuck_table := col.adrelid;
            stuck_column := col.adnum;
            EXIT;
        ELSIF col.is_direct THEN
            -- The shard's number stands in the call itself, so that is written anew. A sequence of another
            -- schema is shared, as a table is that a foreign key refers to there.
            expression := snowflake_internal.call_text(
                shard, coalesce(new_relations[array_position(old_relations, col.seq)], col.seq)::regclass, col.epoch_ms);
        ELSIF col.is_bound THEN
            PERFORM pg_catalog.set_config('search_path', template_path, true);
            expression := pg_catalog.pg_get_expr(col.adbin, col.adrelid);
            PERFORM pg_catalog.set_config('search_path', own_path, true);
        ELSE
            CONTINUE;
        END IF;
        -- ONLY: a partition's default is its own.
        commands := format(E'%sALTER TABLE ONLY %s ALTER COLUMN %I SET DEFAULT %s;\n',
                           commands, col.copy, col.name, expression);
    END LOOP;

    IF stuck_table IS NULL THEN
        PERFORM pg_catalog.set_config('search_path', clone_path, true);
        EXECUTE commands;
        PERFORM pg_catalog.set_config('search_path', own_path, true);
        -- A name that pg_catalog has, too, is not found so: the default is then the template's still.
        SELECT od.adrelid, od.adnum, true INTO stuck_table, stuck_column, is_hidden
        FROM unnest(old_relations, new_relations) AS pair (old, new)
        JOIN pg_attrdef AS od ON od.adrelid = pair.old
        JOIN pg_attribute AS oa ON oa.attrelid = od.adrelid AND oa.attnum = od.adnum
        JOIN pg_attribute AS na ON na.attrelid = pair.new AND na.attname = oa.attname
        JOIN pg_attrdef AS nd ON nd.adrelid = na.attrelid AND nd.adnum = na.attnum
        JOIN pg_depend AS u ON u.classid = 'pg_attrdef'::regclass AND u.objid = od.oid AND u.deptype = 'n'
        JOIN LATERAL (SELECT CASE u.refclassid
                                 WHEN 'pg_class'::regclass THEN new_relations[array_position(old_relations, u.refobjid)]
                                 WHEN 'pg_proc'::regclass THEN new_functions[array_position(old_functions, u.refobjid)]
                             END) AS moved (objid) ON moved.objid IS NOT NULL
        WHERE oa.attgenerated = ''
          AND NOT EXISTS (SELECT FROM pg_depend AS v
                          WHERE v.classid = 'pg_attrdef'::regclass AND v.objid = nd.oid
                            AND v.refclassid = u.refclassid AND v.refobjid = moved.objid);
    END IF;

    IF stuck_table IS NOT NULL THEN
        SELECT a.attname AS name, a.attrelid::regclass AS relation, pg_get_expr(d.adbin, d.adrelid) AS expression
        INTO col
        FROM pg_attribute AS a JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
        WHERE a.attrelid = stuck_table AND a.attnum = stuck_column;
        RAISE EXCEPTION 'cannot make the default of column % of table % one of shard %',
                quote_ident(col.name), col.relation, shard USING
            ERRCODE = 'feature_not_supported',
            DETAIL = format('It is %s.', col.expression),
            HINT = CASE WHEN is_hidden
                        THEN 'Rename the sequence or function in it that has the name of one in pg_catalog.'
                        ELSE format('Let it be a call and no more: ALTER TABLE %s ALTER COLUMN %I SET DEFAULT %s.',
                                    col.relation, col.name, coalesce(old_functions[1]::regprocedure::text,
                                                                     '@extschema@.snowflake_next_id(shard, sequence)')) END;
    END IF;
END;
$$;
COMMENT ON FUNCTION snowflake_internal.clone_defaults(regnamespace, regnamespace, integer, oid[], oid[], oid[], oid[]) IS
    'step of snowflake_clone_shard(): defaults that draw from the template''s sequences and functions draw from the clone''s';

CREATE FUNCTION snowflake_internal.clone_foreign_keys(old_relations oid[], new_relations oid[]) RETURNS void
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    commands text;
BEGIN
    -- Those of partitions that are copies of their parent's come with the parent's; so do those that
    -- PostgreSQL keeps for each partition of the table referred to. Always in the same order: tables of
    -- other schemas are locked by it, and another session may clone the same template.
    SELECT string_agg(format(E'ALTER TABLE %s %s;\n', k.copy, k.additions), '' ORDER BY k.copy) INTO commands
    FROM (
        SELECT pair.new::regclass AS copy,
               string_agg(format(
                   'ADD CONSTRAINT %I FOREIGN KEY (%s) REFERENCES %s (%s)%s%s%s%s%s', c.conname, cols.referencing,
                   coalesce(new_relations[array_position(old_relations, c.confrelid)], c.confrelid)::regclass,
                   cols.referenced,
                   CASE c.confmatchtype WHEN 'f' THEN ' MATCH FULL' END,
                   CASE c.confupdtype WHEN 'r' THEN ' ON UPDATE RESTRICT' WHEN 'c' THEN ' ON UPDATE CASCADE'
                                      WHEN 'n' THEN ' ON UPDATE SET NULL' WHEN 'd' THEN ' ON UPDATE SET DEFAULT' END,
                   CASE c.confdeltype WHEN 'r' THEN ' ON DELETE RESTRICT' WHEN 'c' THEN ' ON DELETE CASCADE'
                                      WHEN 'n' THEN ' ON DELETE SET NULL' WHEN 'd' THEN ' ON DELETE SET DEFAULT' END
                       || coalesce(' (' || cols.to_set || ')', ''),
                   CASE WHEN c.condeferred THEN ' DEFERRABLE INITIALLY DEFERRED'
                        WHEN c.condeferrable THEN ' DEFERRABLE' END,
                   CASE WHEN NOT later.enforced THEN ' NOT ENFORCED'
                        WHEN NOT c.convalidated THEN ' NOT VALID' END),
                   ', ' ORDER BY c.conname) AS additions
        FROM unnest(old_relations, new_relations) AS pair (old, new)
        JOIN pg_constraint AS c ON c.conrelid = pair.old
        -- Columns that pg_constraint has from 18 on.
        CROSS JOIN LATERAL (SELECT coalesce((to_jsonb(c) ->> 'conperiod')::boolean, false),
                                   coalesce((to_jsonb(c) ->> 'conenforced')::boolean, true)) AS later (period, enforced)
        CROSS JOIN LATERAL (
            SELECT string_agg(o.period || quote_ident(a.attname), ', ' ORDER BY o.n),
                   string_agg(o.period || quote_ident(b.attname), ', ' ORDER BY o.n),
                   string_agg(quote_ident(a.attname), ', ' ORDER BY array_position(c.confdelsetcols, a.attnum))
                       FILTER (WHERE a.attnum = ANY (c.confdelsetcols))
            FROM (SELECT u.a, u.b, u.n,
                         CASE WHEN later.period AND u.n = cardinality(c.conkey) THEN 'PERIOD ' ELSE '' END AS period
                  FROM unnest(c.conkey, c.confkey) WITH ORDINALITY AS u (a, b, n)) AS o
            JOIN pg_attribute AS a ON a.attrelid = c.conrelid AND a.attnum = o.a
            JOIN pg_attribute AS b ON b.attrelid = c.confrelid AND b.attnum = o.b
        ) AS cols (referencing, referenced, to_set)
        WHERE c.contype = 'f' AND c.conparentid = 0
        GROUP BY pair.new
    ) AS k;
    EXECUTE coalesce(commands, '');
END;
$$;
COMMENT ON FUNCTION snowflake_internal.clone_foreign_keys(oid[], oid[]) IS
    'step of snowflake_clone_shard(): foreign keys, to the clone''s tables where they were to the template''s';
