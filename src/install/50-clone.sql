-- Cloning a shard: the template's tables again, in a schema with a shard number of its own. Its steps are in
-- 51-clone-tables.sql to 54-clone-notices.sql, and rely on the settings of snowflake_clone_shard().
--
-- CREATE TABLE (LIKE … INCLUDING ALL) copies expressions as parsed trees, so what it copies needs no text.
-- The rest is read from the catalogues and built with format(). Deparsed text is used whole or not at all:
-- a partition's key and bound, a default that has to find other sequences.
--
-- A database has thousands of shards, so nothing here may read a catalogue from end to end. A schema's
-- objects are found in pg_depend, by the schema: that has an index, pg_class.relnamespace alone has none.
-- The settings keep the planner to indexes and nested loops, in the order that is written, also where the
-- statistics are those of an empty database.
--
-- All of it is done by the caller, with the caller's rights. Whoever clones trusts the template's owner, as
-- with LIKE: functions in index expressions may be run.

CREATE FUNCTION snowflake_clone_shard(template name, shard integer, schema_name name) RETURNS void
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
    SET search_path = pg_catalog, pg_temp
    -- Text that is deparsed here is parsed here: it must not lose digits, nor take days for months.
    SET datestyle = 'ISO'
    SET extra_float_digits = 1
    SET default_tablespace = ''
    SET enable_seqscan = off
    SET enable_hashjoin = off
    SET enable_mergejoin = off
    SET join_collapse_limit = 1
    SET jit = off
    SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    source CONSTANT regnamespace := to_regnamespace(quote_ident(template));
    target regnamespace;
    is_new_schema boolean;
    denied record;
    id_function record;
    old_functions oid[];
    new_functions oid[] := '{}';
    old_relations oid[];
    new_relations oid[];
BEGIN
    PERFORM snowflake_internal.require_read_committed(
        'snowflake_clone_shard'::text, format('%L, %s, %L', template, shard, schema_name));
    IF source IS NULL THEN
        RAISE EXCEPTION 'schema % does not exist', quote_ident(template) USING
            ERRCODE = 'invalid_schema_name',
            HINT = 'Schemas that make IDs: SELECT schema_name FROM @extschema@.snowflake_shards.';
    END IF;
    PERFORM snowflake_internal.claim_shard(shard, schema_name);

    -- Looked up after the claim, which may have waited for another session to make it.
    target := to_regnamespace(quote_ident(schema_name));
    is_new_schema := target IS NULL;
    -- Default privileges and publications may be prepared in a schema that is still empty.
    IF EXISTS (SELECT FROM pg_depend AS d
               WHERE d.refclassid = 'pg_namespace'::regclass AND d.refobjid = target
                 AND d.classid NOT IN ('pg_default_acl'::regclass, 'pg_publication_namespace'::regclass)) THEN
        RAISE EXCEPTION 'schema % exists and is not empty', target USING
            ERRCODE = 'duplicate_schema',
            HINT = 'Give the name of a schema that does not exist, or of an empty one of your own.';
    END IF;

    -- All rights that it takes, before anything is made, each with the statement that gives it.
    SELECT r.object, r.command INTO denied
    FROM (SELECT 1, format('schema %s', source), format('GRANT USAGE ON SCHEMA %s TO %I', source, current_user)
          WHERE NOT has_schema_privilege(source, 'USAGE')
          UNION ALL
          SELECT 2, format('table %s', c.oid::regclass),
                 format('GRANT SELECT ON %s TO %I', c.oid::regclass, current_user)
          FROM pg_depend AS d JOIN pg_class AS c ON c.oid = d.objid
          WHERE d.refclassid = 'pg_namespace'::regclass AND d.refobjid = source AND d.classid = 'pg_class'::regclass
            AND c.relkind IN ('r', 'p') AND NOT has_table_privilege(c.oid, 'SELECT')
          UNION ALL
          SELECT CASE WHEN has_schema_privilege(f.relnamespace, 'USAGE') THEN 4 ELSE 3 END,
                 CASE WHEN has_schema_privilege(f.relnamespace, 'USAGE') THEN format('table %s', f.oid::regclass)
                      ELSE format('schema %s', f.relnamespace::regnamespace) END,
                 CASE WHEN has_schema_privilege(f.relnamespace, 'USAGE')
                      THEN format('GRANT REFERENCES ON %s TO %I', f.oid::regclass, current_user)
                      ELSE format('GRANT USAGE ON SCHEMA %s TO %I', f.relnamespace::regnamespace, current_user) END
          FROM pg_depend AS d JOIN pg_constraint AS k ON k.conrelid = d.objid JOIN pg_class AS f ON f.oid = k.confrelid
          WHERE d.refclassid = 'pg_namespace'::regclass AND d.refobjid = source AND d.classid = 'pg_class'::regclass
            AND k.contype = 'f' AND f.relnamespace <> source
            AND NOT (has_schema_privilege(f.relnamespace, 'USAGE') AND has_any_column_privilege(f.oid, 'REFERENCES'))
          UNION ALL
          SELECT 5, format('database %I', current_database()),
                 format('GRANT CREATE ON DATABASE %I TO %I', current_database(), current_user)
          WHERE is_new_schema AND NOT has_database_privilege(current_database(), 'CREATE')
          UNION ALL
          SELECT 6, format('schema %s', target), format('ALTER SCHEMA %s OWNER TO %I', target, current_user)
          FROM pg_namespace AS n
          WHERE n.oid = target AND NOT pg_has_role(n.nspowner, 'USAGE')) AS r (step, object, command)
    ORDER BY r.step, r.object LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'permission denied for %', denied.object USING
            ERRCODE = 'insufficient_privilege', HINT = format('Its owner can run %s.', denied.command);
    END IF;

    old_functions := ARRAY(
        SELECT p.oid
        FROM pg_depend AS d
        JOIN pg_proc AS p ON p.oid = d.objid
        CROSS JOIN LATERAL snowflake_internal.call_of('pg_proc'::regclass::oid, p.oid, 0) AS k
        WHERE d.refclassid = 'pg_namespace'::regclass AND d.refobjid = source AND d.classid = 'pg_proc'::regclass
          AND p.pronargs = 0 AND NOT p.proretset
          AND k.function IS NULL AND k.shard IS NOT NULL AND k.seq IS NOT NULL AND k.epoch_ms IS NOT NULL
          AND k.is_plain
        ORDER BY p.oid);
    IF cardinality(old_functions) = 0 AND NOT EXISTS (
            SELECT FROM pg_depend AS d
            JOIN pg_attrdef AS a ON a.adrelid = d.objid
            CROSS JOIN LATERAL snowflake_internal.call_of('pg_class'::regclass::oid, a.adrelid, a.adnum::integer) AS k
            WHERE d.refclassid = 'pg_namespace'::regclass AND d.refobjid = source AND d.classid = 'pg_class'::regclass
              AND k.function IS NULL AND k.shard IS NOT NULL) THEN
        RAISE EXCEPTION 'schema % is no shard', source USING
            ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = 'It has neither a function nor a column default that calls snowflake_next_id() with a shard.',
            HINT = CASE WHEN to_regprocedure(format('%s.next_id()', source)) IS NULL
                        THEN format('Make it one, and let its defaults call %s.next_id(): SELECT %s(shard, %L).',
                                    source, '@extschema@.snowflake_create_shard', template)
                        ELSE format('Make its function native: SELECT %s(%L, shard).',
                                    '@extschema@.snowflake_adopt', format('%s.next_id()', source)) END;
    END IF;

    IF is_new_schema THEN
        EXECUTE format('CREATE SCHEMA %I', schema_name);
        target := quote_ident(schema_name);
    END IF;
    PERFORM snowflake_internal.clone_tables(source, target);
    PERFORM snowflake_internal.clone_sequences(source, target);

    -- From here on a clone is found by its name.
    SELECT coalesce(array_agg(o.oid ORDER BY o.oid), '{}'), coalesce(array_agg(n.oid ORDER BY o.oid), '{}')
    INTO old_relations, new_relations
    FROM pg_depend AS d
    JOIN pg_class AS o ON o.oid = d.objid
    JOIN pg_class AS n ON n.relname = o.relname AND n.relnamespace = target
    WHERE d.refclassid = 'pg_namespace'::regclass AND d.refobjid = source AND d.classid = 'pg_class'::regclass
      AND o.relkind IN ('r', 'p', 'S');

    FOR id_function IN
        SELECT format('%s.%I()', target, p.proname) AS name, coalesce(cloned.seq, k.seq) AS seq, k.epoch_ms,
               -- Not for a sequence elsewhere: the caller may have rights on it that the template's owner has not.
               p.prosecdef AND cloned.seq IS NOT NULL AS is_definers
        FROM unnest(old_functions) AS old (oid)
        JOIN pg_proc AS p ON p.oid = old.oid
        CROSS JOIN LATERAL snowflake_internal.call_of('pg_proc'::regclass::oid, p.oid, 0) AS k
        CROSS JOIN LATERAL (SELECT new_relations[array_position(old_relations, k.seq)]) AS cloned (seq)
        ORDER BY p.oid
    LOOP
        EXECUTE format('CREATE FUNCTION %s RETURNS bigint LANGUAGE sql VOLATILE PARALLEL UNSAFE %s RETURN %s',
                       id_function.name, CASE WHEN id_function.is_definers THEN 'SECURITY DEFINER' END,
                       snowflake_internal.call_text(shard, id_function.seq::regclass, id_function.epoch_ms));
        EXECUTE format('COMMENT ON FUNCTION %s IS %L', id_function.name, format('next ID of shard %s', shard));
        new_functions := new_functions || id_function.name::regprocedure::oid;
    END LOOP;

    PERFORM snowflake_internal.clone_defaults(
        source, target, shard, old_relations, new_relations, old_functions, new_functions);
    PERFORM snowflake_internal.clone_foreign_keys(old_relations, new_relations);
    PERFORM snowflake_internal.clone_comments(old_relations, new_relations);
    PERFORM snowflake_internal.clone_privileges(
        source, target, is_new_schema, old_relations, new_relations, old_functions, new_functions);
    PERFORM snowflake_internal.clone_notices(source, target, old_relations, new_relations, old_functions);
END;
$$;
COMMENT ON FUNCTION snowflake_clone_shard(name, integer, name) IS
    'makes a schema (new, or empty and the caller''s own) a shard with the template schema''s tables, without their rows: constraints, indexes, defaults, comments and privileges; a NOTICE names what is not copied';
