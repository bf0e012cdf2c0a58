-- Steps of snowflake_adopt(): the sequence that the old function draws from.

-- The one sequence that two calls of a function have drawn from, locked.
CREATE FUNCTION snowflake_internal.adopt_sequence(
        legacy regprocedure, shard integer, seq regclass, calls snowflake_internal.observation[]) RETURNS regclass
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    found regclass[] := ARRAY(SELECT unnest(calls[1].seqs) INTERSECT SELECT unnest(calls[2].seqs) ORDER BY 1);
    schema CONSTANT regnamespace := (SELECT p.pronamespace FROM pg_proc AS p WHERE p.oid = legacy);
BEGIN
    IF calls[2].last_value IS NULL OR calls[1].last_value = calls[2].last_value THEN
        RAISE EXCEPTION 'function % draws from no sequence', legacy USING
            ERRCODE = 'invalid_function_definition',
            DETAIL = format('lastval() was %s after one call, and %s after the next.',
                            coalesce(calls[1].last_value::text, 'not defined'),
                            coalesce(calls[2].last_value::text, 'not defined')),
            HINT = snowflake_internal.adopt_attach_text(legacy, shard, NULL, snowflake_internal.default_epoch(), calls);
    ELSIF cardinality(found) = 0 AND seq IS NOT NULL THEN
        RAISE EXCEPTION 'function % does not draw from sequence %', legacy, seq USING
            ERRCODE = 'invalid_function_definition',
            DETAIL = format('lastval() was %s after a call, and is not the currval() of this sequence.', calls[2].last_value);
    ELSIF cardinality(found) = 0 THEN
        RAISE EXCEPTION 'function % draws from no sequence of schema %', legacy, schema USING
            ERRCODE = 'invalid_function_definition',
            DETAIL = format('lastval() was %s after a call, and is the currval() of none of them.', calls[2].last_value),
            HINT = format('Give the sequence by name: SELECT %ssnowflake_adopt(%L, %s, seq => ...);', snowflake_internal.prefix(), legacy, shard);
    ELSIF cardinality(found) > 1 THEN
        RAISE EXCEPTION 'function % draws from several sequences', legacy USING
            ERRCODE = 'invalid_function_definition',
            DETAIL = format('After two calls lastval() was the currval() of %s.', array_to_string(found, ', '));
    END IF;
    IF seq IS NULL THEN
        PERFORM snowflake_internal.adopt_lock(legacy, shard, found[1], false);
    END IF;
    RETURN found[1];
END;
$$;

-- lastval(), and which sequences have it as their currval(): of the schema of a function, or the given one alone.
CREATE FUNCTION snowflake_internal.adopt_drawn(legacy regprocedure, seq regclass, OUT last_value bigint, OUT seqs oid[])
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    candidate regclass;
BEGIN
    last_value := lastval();
    FOR candidate IN
        SELECT c.oid
        FROM pg_class AS c
        WHERE c.relkind = 'S'
          AND CASE WHEN seq IS NOT NULL THEN c.oid = seq
                   ELSE c.relnamespace = (SELECT p.pronamespace FROM pg_proc AS p WHERE p.oid = legacy)
                        -- currval() would lock each sequence of the schema; one that was drawn from is locked.
                        AND EXISTS (SELECT FROM pg_locks AS l
                                    WHERE l.locktype = 'relation' AND l.relation = c.oid
                                      AND l.pid = pg_backend_pid()) END
    LOOP
        BEGIN
            IF currval(candidate) = last_value THEN
                seqs := seqs || candidate::oid;
            END IF;
        EXCEPTION WHEN object_not_in_prerequisite_state OR insufficient_privilege THEN
            NULL; -- not drawn from in this session, or not by the caller
        END;
    END LOOP;
EXCEPTION WHEN object_not_in_prerequisite_state OR insufficient_privilege THEN
    NULL; -- nothing was drawn
END;
$$;

-- Makes others who draw from a sequence wait until the transaction ends. Refuses one that native IDs cannot be drawn
-- from, and one that others use, because they get numbers above 2^50 after the adoption; a NOTICE if they are bigint
-- columns and the sequence was given by name. A PL/pgSQL body, or an SQL body in text, does not show which sequences it
-- uses. Any role can name the sequence in a DEFAULT of its own: it decides nothing if its owner may not draw.
CREATE FUNCTION snowflake_internal.adopt_lock(legacy regprocedure, shard integer, seq regclass, is_given boolean)
    RETURNS void LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    shape CONSTANT pg_sequence := (SELECT s FROM pg_sequence AS s WHERE s.seqrelid = seq);
    -- It changes the sequence for the old function, too: that must not make IDs after that.
    hint CONSTANT text := concat(CASE WHEN shape.seqcycle THEN
            E'-- If the function has nextval() without % 1024, write that first: the sequence will not cycle any more.\n' END,
        format('BEGIN; ALTER SEQUENCE %s AS bigint INCREMENT BY 1 NO MAXVALUE; SELECT %ssnowflake_adopt(%L, %s%s); COMMIT;', seq,
               snowflake_internal.prefix(), legacy, shard, CASE WHEN is_given THEN format(', seq => %L', seq) END));
    listed text;
    all_bigint boolean;
    barred text;
BEGIN
    PERFORM snowflake_internal.require_sequence(seq, hint);
    SELECT string_agg(u.description, ', ' ORDER BY u.description COLLATE "C") FILTER (WHERE u.may_draw),
           bool_and(u.is_bigint) FILTER (WHERE u.may_draw),
           string_agg(u.description, ', ' ORDER BY u.description COLLATE "C") FILTER (WHERE NOT u.may_draw)
    INTO listed, all_bigint, barred FROM snowflake_internal.adopt_users(legacy, seq) AS u;
    IF barred IS NOT NULL THEN
        RAISE NOTICE 'sequence % is named by objects whose owners may not draw from it: %', seq, barred;
    END IF;
    IF all_bigint AND is_given THEN
        RAISE NOTICE 'sequence % gives numbers above 2^50 from now on, also to: %', seq, listed;
    ELSIF listed IS NOT NULL THEN
        RAISE EXCEPTION 'sequence % is used by others than function %', seq, legacy USING
            ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = format('Numbers above 2^50 would go to: %s.', listed),
            HINT = concat('Give each of them a sequence of its own.', CASE WHEN all_bigint THEN
                format(' Or accept such numbers there: SELECT %ssnowflake_adopt(%L, %s, seq => %L);',
                       snowflake_internal.prefix(), legacy, shard, seq) END);
    END IF;
    -- ALTER SEQUENCE takes ShareRowExclusiveLock, for which nextval() waits. This one changes nothing.
    EXECUTE format('ALTER SEQUENCE %s CACHE %s', seq, shape.seqcache);
END;
$$;

-- Other users of the sequence of a function, but for native IDs; whether it is a bigint column, and whether its owner may draw.
CREATE FUNCTION snowflake_internal.adopt_users(
        legacy regprocedure, seq regclass, OUT description text, OUT is_bigint boolean, OUT may_draw boolean)
        RETURNS SETOF record LANGUAGE sql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
SELECT pg_describe_object(u.classid, u.objid, u.objsubid), coalesce(t.typoutput = 'int8out'::regproc, false),
       coalesce(has_sequence_privilege(coalesce(c.relowner, p.proowner, y.typowner), $2, 'USAGE, UPDATE'), true)
FROM (SELECT d.classid, d.objid, d.objsubid, f.adrelid AS tbl, f.adnum::integer AS attnum
      FROM pg_depend AS d LEFT JOIN pg_attrdef AS f ON d.classid = 'pg_attrdef'::regclass AND f.oid = d.objid
      WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = $2 AND d.deptype = 'n'
        AND d.refobjsubid = 0 -- not a query that reads its columns
        AND (d.classid, d.objid) <> ('pg_proc'::regclass, $1::oid)
      UNION ALL
      -- an identity column: its sequence depends on it
      SELECT d.refclassid, d.refobjid, d.refobjsubid, d.refobjid, d.refobjsubid
      FROM pg_depend AS d
      WHERE d.classid = 'pg_class'::regclass AND d.objid = $2 AND d.refclassid = 'pg_class'::regclass
          AND d.deptype = 'i') AS u
LEFT JOIN pg_attribute AS a ON a.attrelid = u.tbl AND a.attnum = u.attnum
LEFT JOIN pg_type AS t ON t.oid = a.atttypid
-- the owner of the table, view, function or domain
LEFT JOIN pg_rewrite AS w ON u.classid = 'pg_rewrite'::regclass AND w.oid = u.objid
LEFT JOIN pg_class AS c ON c.oid = coalesce(u.tbl, w.ev_class)
LEFT JOIN pg_proc AS p ON u.classid = 'pg_proc'::regclass AND p.oid = u.objid
LEFT JOIN pg_type AS y ON u.classid = 'pg_type'::regclass AND y.oid = u.objid
WHERE NOT EXISTS (SELECT FROM snowflake_internal.call_of(
                      CASE WHEN u.tbl IS NULL THEN u.classid ELSE 'pg_class'::regclass::oid END,
                      coalesce(u.tbl, u.objid), coalesce(u.attnum, 0)) AS k WHERE k.seq = $2)
  AND NOT snowflake_internal.asks_settled(u.classid, u.objid)
$$;

-- Sets bits 10 to 22 of the value of a sequence; returns the value to go on with after that. With 8 in the sequence, a
-- counter of 12 bits or one without a mask looks like one of 10 bits. So the bits of the value that would fall on the
-- shard field are set for one call. 2^23 fits into the integer variable that some functions have for it.
CREATE FUNCTION snowflake_internal.adopt_jump(seq regclass) RETURNS bigint
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    present CONSTANT bigint := (SELECT pg_sequence_last_value(s.seqrelid) FROM pg_sequence AS s WHERE s.seqrelid = seq);
    far CONSTANT bigint := present | (8191 << 10);
BEGIN
    -- If the present value has all these bits, it would be drawn again.
    -- Unlike setval(), RESTART is undone by a rollback.
    EXECUTE format('ALTER SEQUENCE %s RESTART WITH %s', seq, CASE WHEN far > present THEN far ELSE far + (1 << 23) END);
    RETURN present + 1;
END;
$$;
