-- Steps of snowflake_attach(): which sequence, and its other users.

-- The object in pg_depend (a DEFAULT, or a type) that a new value of each column comes from.
CREATE FUNCTION snowflake_internal.attach_old_defaults(scope snowflake_internal.attach_member[])
    RETURNS TABLE (tbl regclass, attnum smallint, column_name name, classid oid, objid oid)
    LANGUAGE sql STABLE STRICT PARALLEL SAFE ROWS 1 SET search_path = pg_catalog, pg_temp AS $$
-- A column without a DEFAULT has that of its domain.
SELECT s.tbl, s.attnum, s.column_name,
       CASE WHEN f.oid IS NULL THEN 'pg_type'::regclass ELSE 'pg_attrdef'::regclass END, coalesce(f.oid, a.atttypid)
FROM unnest($1) AS s
JOIN pg_attribute AS a ON a.attrelid = s.tbl AND a.attnum = s.attnum
LEFT JOIN pg_attrdef AS f ON f.adrelid = s.tbl AND f.adnum = s.attnum
WHERE s.is_attached
$$;

-- The sequences that a column owns, as a serial column does, and those that its DEFAULT, or one below it, draws from.
-- Only stored expressions are seen: a function with a body in text, such as PL/pgSQL, does not depend on its sequence.
CREATE FUNCTION snowflake_internal.attach_old_sequences(scope snowflake_internal.attach_member[])
    RETURNS TABLE (seq regclass, is_owned boolean, is_drawn boolean)
    LANGUAGE sql STABLE STRICT PARALLEL SAFE ROWS 1 SET search_path = pg_catalog, pg_temp AS $$
SELECT u.seq, bool_or(u.is_owned), bool_or(NOT u.is_owned)
FROM (SELECT d.objid AS seq, true AS is_owned
      FROM unnest($1) AS s
      JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = s.tbl AND d.refobjsubid = s.attnum
                         AND d.classid = 'pg_class'::regclass AND d.deptype = 'a'
      WHERE s.is_attached AND s.tbl = s.root
      UNION
      SELECT d.refobjid, false
      FROM snowflake_internal.attach_old_defaults($1) AS o
      JOIN pg_depend AS d ON d.classid = o.classid AND d.objid = o.objid AND d.refclassid = 'pg_class'::regclass) AS u
JOIN pg_class AS c ON c.oid = u.seq AND c.relkind = 'S'
GROUP BY u.seq
$$;

-- Other users of a sequence than the columns that are to be attached: columns, views, functions; natively or not, with which epoch.
CREATE FUNCTION snowflake_internal.attach_users(seq regclass, scope snowflake_internal.attach_member[])
    RETURNS TABLE (described text, tbl regclass, column_name name, is_root boolean, is_native boolean, epoch_ms bigint)
    LANGUAGE sql STABLE STRICT PARALLEL RESTRICTED ROWS 1 SET search_path = pg_catalog, pg_temp AS $$
SELECT DISTINCT pg_describe_object(u.classid, u.objid, 0), f.adrelid::regclass, a.attname, a.attinhcount = 0,
       k.seq IS NOT NULL, k.epoch_ms
FROM snowflake_internal.dependents('pg_class'::regclass, $1, 0) AS u
LEFT JOIN pg_attrdef AS f ON u.classid = 'pg_attrdef'::regclass AND f.oid = u.objid
LEFT JOIN pg_attribute AS a ON a.attrelid = f.adrelid AND a.attnum = f.adnum
LEFT JOIN LATERAL snowflake_internal.call_of(CASE WHEN f.oid IS NULL THEN u.classid ELSE 'pg_class'::regclass::oid END,
                                             coalesce(f.adrelid, u.objid), coalesce(f.adnum, 0)) AS k ON k.seq = $1
WHERE NOT EXISTS (SELECT FROM unnest($2) AS s WHERE s.is_attached AND s.tbl = f.adrelid AND s.attnum = f.adnum)
  AND NOT snowflake_internal.asks_settled(u.classid, u.objid)
$$;

-- The sequence to draw from: the given one, or the one that the column owns; NULL: one is to be made.
-- The sequence of a serial column is kept: its privileges, its name in scripts, its owner. Not if others draw
-- from it: their numbers would jump to 2^50 and beyond, and an integer column would take no row any more.
CREATE FUNCTION snowflake_internal.attach_sequence(
        scope snowflake_internal.attach_member[], shard integer, seq regclass, epoch_ms bigint) RETURNS regclass
    LANGUAGE plpgsql STABLE CALLED ON NULL INPUT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    col CONSTANT snowflake_internal.attach_member := scope[1];
    schema regnamespace;
    kept regclass;
BEGIN
    IF seq IS NOT NULL THEN
        PERFORM snowflake_internal.attach_require_sequence(scope, shard, seq, epoch_ms);
        RETURN seq;
    END IF;
    PERFORM snowflake_internal.attach_require_unshared(scope, shard, epoch_ms);
    SELECT o.seq INTO kept
    FROM snowflake_internal.attach_old_sequences(scope) AS o
    WHERE o.is_owned AND NOT EXISTS (SELECT FROM snowflake_internal.attach_users(o.seq, scope))
    ORDER BY o.is_drawn DESC, o.seq LIMIT 1;
    PERFORM snowflake_internal.require_open(kept);
    SELECT c.relnamespace INTO schema FROM pg_class AS c WHERE c.oid = col.tbl;
    IF kept IS NULL AND NOT has_schema_privilege(schema, 'CREATE') THEN
        RAISE EXCEPTION 'permission denied for schema %', schema USING
            ERRCODE = 'insufficient_privilege',
            DETAIL = format('The sequence of column %I of table %s is to be made in it.', col.column_name, col.tbl),
            HINT = format('GRANT CREATE ON SCHEMA %s TO %I;', schema, current_user);
    END IF;
    RETURN kept;
END;
$$;

-- Refuses a column whose DEFAULT draws from a sequence that others draw from, too; the hint has the statements to share
-- it, or to part them. Two columns that had their numbers from one sequence expect that no number is in both. With a
-- sequence for each there would be such numbers, so the caller has to decide.
CREATE FUNCTION snowflake_internal.attach_require_unshared(
        scope snowflake_internal.attach_member[], shard integer, epoch_ms bigint) RETURNS void
    LANGUAGE plpgsql STABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    col CONSTANT snowflake_internal.attach_member := scope[1];
    old record;
BEGIN
    SELECT o.seq, string_agg(u.described, E'\n' ORDER BY u.described COLLATE "C") AS others,
           max(u.epoch_ms) AS epoch_ms INTO old
    FROM snowflake_internal.attach_old_sequences(scope) AS o
    CROSS JOIN LATERAL snowflake_internal.attach_users(o.seq, scope) AS u
    WHERE o.is_drawn
    GROUP BY o.seq ORDER BY o.seq LIMIT 1;
    IF FOUND THEN
        PERFORM snowflake_internal.require_open(old.seq);
        epoch_ms := nullif(coalesce(old.epoch_ms, epoch_ms), snowflake_internal.default_epoch());
        RAISE EXCEPTION 'column % of table % draws from a sequence that others draw from, too',
            quote_ident(col.column_name), col.tbl USING ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = format(E'Others that draw from sequence %s:\n%s', old.seq, old.others),
            HINT = concat_ws(E'\n',
                'Run one of these, in one transaction. To share the sequence, so that no ID is in two columns:',
                (SELECT snowflake_internal.reshape_hint(old.seq) FROM pg_sequence AS q
                 WHERE q.seqrelid = old.seq
                   AND NOT snowflake_internal.holds_position(q.seqtypid, q.seqincrement, q.seqmax)),
                -- Columns of other schemas are of other shards.
                (SELECT string_agg(format('SELECT %ssnowflake_attach(%s);', snowflake_internal.prefix(), snowflake_internal.attach_arguments(
                                       v.tbl, v.column_name, CASE WHEN c.relnamespace = o.relnamespace THEN shard END,
                                       old.seq, attach_require_unshared.epoch_ms)),
                                   E'\n' ORDER BY v.position, v.tbl::text COLLATE "C", v.column_name COLLATE "C")
                 FROM (SELECT 1 AS position, col.tbl, col.column_name
                       UNION ALL
                       SELECT 2, u.tbl, u.column_name FROM snowflake_internal.attach_users(old.seq, scope) AS u
                       WHERE u.is_root AND NOT u.is_native) AS v
                 JOIN pg_class AS c ON c.oid = v.tbl
                 JOIN pg_class AS o ON o.oid = col.tbl),
                'For a sequence of its own:',
                -- DROP DEFAULT would leave the default of a domain.
                format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT NULL;', col.tbl, col.column_name),
                format('SELECT %ssnowflake_attach(%s);', snowflake_internal.prefix(),
                       snowflake_internal.attach_arguments(col.tbl, col.column_name, shard, NULL, epoch_ms)));
    END IF;
END;
$$;

-- Refuses a given sequence that the caller may not use, that cannot hold positions, that goes before the table does, or that has another epoch.
CREATE FUNCTION snowflake_internal.attach_require_sequence(
        scope snowflake_internal.attach_member[], shard integer, seq regclass, epoch_ms bigint) RETURNS void
    LANGUAGE plpgsql STABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    col CONSTANT snowflake_internal.attach_member := scope[1];
    rel pg_class;
    other record;
    has_rows CONSTANT boolean := (SELECT bool_or(pg_relation_size(s.tbl) > 0) FROM unnest(scope) AS s WHERE s.is_attached);
BEGIN
    PERFORM snowflake_internal.require_sequence(seq);
    IF NOT has_sequence_privilege(seq, CASE WHEN has_rows THEN 'UPDATE' ELSE 'USAGE, UPDATE' END) THEN
        RAISE EXCEPTION 'permission denied for sequence %', seq USING ERRCODE = 'insufficient_privilege',
            DETAIL = CASE WHEN has_rows
                THEN format('It must be advanced beyond the IDs of table %s. A role that may do that can set it back, too.',
                            col.tbl)
                ELSE 'Each new row draws an ID from it.' END,
            HINT = format('GRANT %s ON SEQUENCE %s TO %I;', CASE WHEN has_rows THEN 'UPDATE' ELSE 'USAGE' END, seq,
                          current_user);
    END IF;
    IF EXISTS (SELECT FROM pg_depend AS d WHERE d.classid = 'pg_class'::regclass AND d.objid = seq AND d.deptype = 'i')
    THEN
        RAISE EXCEPTION 'sequence % belongs to an identity column', seq USING
            ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = 'It serves that column alone, and is dropped with the identity.',
            HINT = 'Make one to share with CREATE SEQUENCE, and attach each column with it.';
    END IF;
    -- A crash resets an unlogged sequence, and the end of its session drops a temporary one.
    SELECT * INTO rel FROM pg_class AS c WHERE c.oid = seq;
    IF rel.relpersistence NOT IN ('p', (SELECT c.relpersistence FROM pg_class AS c WHERE c.oid = col.tbl)) THEN
        RAISE EXCEPTION 'sequence % is %, and table % is not', seq,
            CASE rel.relpersistence WHEN 'u' THEN 'unlogged' ELSE 'temporary' END, col.tbl USING
            ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = 'It would be lost before the table is, and would make the same IDs again.',
            HINT = CASE rel.relpersistence WHEN 'u' THEN format('ALTER SEQUENCE %s SET LOGGED;', seq)
                                           ELSE 'Choose another sequence.' END;
    END IF;
    SELECT u.described, u.epoch_ms INTO other FROM snowflake_internal.attach_users(seq, scope) AS u
    WHERE u.epoch_ms <> attach_require_sequence.epoch_ms ORDER BY u.described COLLATE "C" LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'sequence % makes IDs with another epoch', seq USING
            ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = format('It is %s in %s, and would be %s here. With two epochs, '
                            'one sequence can make the same ID twice.',
                            other.epoch_ms, other.described, epoch_ms),
            HINT = format('SELECT %ssnowflake_attach(%s);', snowflake_internal.prefix(),
                          snowflake_internal.attach_arguments(col.tbl, col.column_name, shard, seq, other.epoch_ms));
    END IF;
END;
$$;

-- NOTICEs: the DEFAULTs that are replaced (a child has its parent's, or one of its own), the old sequences of the
-- column, and the objects that draw from the new one by nextval().
CREATE FUNCTION snowflake_internal.attach_tell_old(scope snowflake_internal.attach_member[], new_seq regclass)
    RETURNS void
    LANGUAGE plpgsql STABLE CALLED ON NULL INPUT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    col CONSTANT snowflake_internal.attach_member := scope[1];
    old record;
    others text;
BEGIN
    FOR old IN
        SELECT s.tbl, pg_get_expr(f.adbin, f.adrelid) AS expression
        FROM unnest(scope) AS s
        JOIN pg_attrdef AS f ON f.adrelid = s.tbl AND f.adnum = s.attnum
        LEFT JOIN pg_attrdef AS r ON r.adrelid = col.tbl AND r.adnum = col.attnum
        WHERE s.is_attached
          AND (s.tbl = col.tbl OR pg_get_expr(f.adbin, f.adrelid) IS DISTINCT FROM pg_get_expr(r.adbin, r.adrelid))
          AND NOT EXISTS (SELECT FROM pg_depend AS d WHERE d.classid = 'pg_attrdef'::regclass AND d.objid = f.oid
                          AND d.refclassid = 'pg_class'::regclass AND d.refobjid = new_seq)
        ORDER BY s.tbl
    LOOP
        RAISE NOTICE 'column % of table % had DEFAULT %', quote_ident(col.column_name), old.tbl, old.expression;
    END LOOP;
    FOR old IN
        SELECT o.seq, (SELECT string_agg(u.described, E'\n' ORDER BY u.described COLLATE "C")
                       FROM snowflake_internal.attach_users(o.seq, scope) AS u) AS others
        FROM snowflake_internal.attach_old_sequences(scope) AS o
        WHERE o.is_owned AND o.seq IS DISTINCT FROM new_seq
        ORDER BY o.seq
    LOOP
        RAISE NOTICE 'sequence % stays as it is; column % of table % does not draw from it',
            old.seq, quote_ident(col.column_name), col.tbl USING
            DETAIL = coalesce(old.others, 'Nothing else is known to draw from it.');
    END LOOP;
    -- Only a given sequence has other users.
    SELECT string_agg(u.described, E'\n' ORDER BY u.described COLLATE "C") INTO others
    FROM snowflake_internal.attach_users(new_seq, scope) AS u WHERE NOT u.is_native;
    IF others IS NOT NULL THEN
        RAISE NOTICE 'nextval() of sequence % makes numbers above 2^50 from now on, which are no IDs', new_seq USING
            DETAIL = others,
            HINT = format('Attach the columns with seq => %L, too. Let the others draw from another sequence.',
                          new_seq);
    END IF;
END;
$$;
