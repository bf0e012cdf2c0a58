-- From the PL/pgSQL function to the native one, in place.

CREATE FUNCTION snowflake_internal.read_legacy(legacy regprocedure, OUT shard bigint, OUT seq text, OUT epoch_ms bigint)
    LANGUAGE c STABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'snowflake_read_legacy';
COMMENT ON FUNCTION snowflake_internal.read_legacy(regprocedure) IS
    'shard, sequence and epoch that an Instagram-style PL/pgSQL function uses, read out of its body; an error, with the line, where it is not such a function beyond doubt';

CREATE FUNCTION snowflake_adopt(
        legacy regprocedure, shard integer DEFAULT NULL, seq regclass DEFAULT NULL, epoch_ms bigint DEFAULT NULL)
    RETURNS void
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
    SET search_path = pg_catalog, pg_temp
    SET row_security = off -- a row that a policy hides has an ID, too: better an error than a lower maximum
AS $$
DECLARE
    old record;
    body record;
    drawing record;
    newest bigint;
BEGIN
    SELECT p.*, l.lanname, n.nspname INTO old
    FROM pg_proc AS p
    JOIN pg_language AS l ON l.oid = p.prolang
    JOIN pg_namespace AS n ON n.oid = p.pronamespace
    WHERE p.oid = legacy;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'function % does not exist', coalesce(legacy::oid::text, 'NULL') USING ERRCODE = 'undefined_function';
    END IF;
    -- CREATE OR REPLACE would say it too, but after having waited for locks and read tables.
    IF NOT pg_has_role(old.proowner, 'USAGE') THEN
        RAISE EXCEPTION 'must be owner of function %', legacy USING ERRCODE = 'insufficient_privilege';
    END IF;
    PERFORM snowflake_internal.require_read_committed(
        'snowflake_adopt'::text,
        concat_ws(', ', quote_literal(legacy::text), 'shard => ' || shard, 'seq => ' || quote_literal(seq::text), 'epoch_ms => ' || epoch_ms));
    IF EXISTS (SELECT FROM snowflake_internal.call_of('pg_proc'::regclass::oid, legacy::oid, 0)) THEN
        RAISE NOTICE 'function % is native already', legacy;
        RETURN;
    END IF;
    IF old.lanname <> 'plpgsql' OR old.prokind <> 'f' OR old.pronargs <> 0 OR old.proretset
       OR old.prorettype <> 'bigint'::regtype THEN
        RAISE EXCEPTION 'function % is no PL/pgSQL function without arguments that returns bigint', legacy USING
            ERRCODE = 'wrong_object_type',
            HINT = 'Change the DEFAULTs that call it: SELECT snowflake_attach(table, column, shard).';
    END IF;

    IF shard IS NULL OR seq IS NULL OR epoch_ms IS NULL THEN
        -- pg_catalog comes first unless a search_path says otherwise; then floor() can be any function.
        IF EXISTS (SELECT FROM unnest(old.proconfig) AS setting
                   WHERE setting ~ '^search_path=.*pg_catalog' AND setting !~ '^search_path="?pg_catalog') THEN
            RAISE EXCEPTION 'function % cannot be read beyond doubt', legacy USING
                ERRCODE = 'invalid_function_definition',
                DETAIL = 'Its own search_path puts other schemas before pg_catalog.',
                HINT = format('Give what it uses by name: SELECT snowflake_adopt(%L, shard => ..., seq => ..., epoch_ms => ...).', legacy);
        END IF;
        SELECT * INTO body FROM snowflake_internal.read_legacy(legacy);
        IF seq IS NULL THEN
            -- Without a schema it is found by the search_path of each call: that can be any sequence.
            IF cardinality(parse_ident(body.seq)) < 2 THEN
                RAISE EXCEPTION 'sequence "%" of function % has no schema', body.seq, legacy USING
                    ERRCODE = 'undefined_table',
                    HINT = format('Name the one that is meant: SELECT snowflake_adopt(%L, seq => %L).', legacy,
                                  format('%I.%s', old.nspname, body.seq));
            END IF;
            seq := body.seq::regclass;
        END IF;
        -- What is given by name goes before what is read; a shard beyond integer is refused below.
        shard := coalesce(shard, least(body.shard, 2147483647)::integer);
        epoch_ms := coalesce(epoch_ms, body.epoch_ms);
    END IF;
    PERFORM snowflake_internal.require_sequence(seq);
    -- An epoch in seconds, say, would make an error of every INSERT: let it be one of this call.
    PERFORM @extschema@.snowflake_encode(clock_timestamp(), 0, 0, epoch_ms);
    PERFORM snowflake_internal.claim_shard(shard, old.nspname);

    -- The claim may have waited for a session that adopted the function, with other arguments perhaps.
    IF EXISTS (SELECT FROM snowflake_internal.call_of('pg_proc'::regclass::oid, legacy::oid, 0)) THEN
        RAISE NOTICE 'function % is native already', legacy;
        RETURN;
    END IF;
    -- No lock keeps others from changing a function, but having written its row does. It becomes VOLATILE in
    -- the end anyway. Then it must still be what was read.
    EXECUTE format('ALTER FUNCTION %I.%I() VOLATILE', old.nspname, old.proname);
    IF NOT EXISTS (SELECT FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
                   WHERE p.oid = legacy
                     AND (n.nspname, p.proname, p.prolang, p.prosrc, p.prosecdef, p.proconfig)
                         IS NOT DISTINCT FROM (old.nspname, old.proname, old.prolang, old.prosrc, old.prosecdef, old.proconfig)) THEN
        RAISE EXCEPTION 'function %.%() was changed meanwhile', quote_ident(old.nspname), quote_ident(old.proname) USING
            ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = 'Its name, schema, language, body or settings are not those that were read.',
            HINT = format('Look at it, and try again: SELECT snowflake_adopt(%L);', legacy);
    END IF;
    RAISE NOTICE 'function %: shard %, sequence %, epoch_ms %', legacy, shard, seq, epoch_ms;

    -- The new IDs are above the old ones as far as the clock is right. Where it was not, and the IDs
    -- are at hand in an index, the sequence is moved past them. Which columns were not looked at is said.
    FOR drawing IN
        SELECT a.attrelid::regclass AS tbl, a.attname,
               CASE WHEN NOT (has_schema_privilege(c.relnamespace, 'USAGE') AND has_column_privilege(a.attrelid, a.attnum, 'SELECT'))
                    THEN format('%I may not read it', current_user)
                    WHEN NOT EXISTS (SELECT FROM pg_index AS i JOIN pg_class AS x ON x.oid = i.indexrelid
                                     WHERE i.indrelid = a.attrelid AND i.indkey[0] = a.attnum AND i.indpred IS NULL AND i.indisvalid
                                       AND x.relam = (SELECT m.oid FROM pg_am AS m WHERE m.amname = 'btree'))
                    THEN 'no index begins with it' END AS obstacle
        FROM pg_depend AS d
        JOIN pg_attrdef AS ad ON ad.oid = d.objid
        JOIN pg_attribute AS a ON a.attrelid = ad.adrelid AND a.attnum = ad.adnum
        JOIN pg_class AS c ON c.oid = a.attrelid
        JOIN pg_type AS t ON t.oid = a.atttypid AND t.typoutput = 'int8out'::regproc -- bigint, or a domain over it
        WHERE d.classid = 'pg_attrdef'::regclass AND d.refclassid = 'pg_proc'::regclass AND d.refobjid = legacy
          AND NOT pg_is_other_temp_schema(c.relnamespace) -- nobody else can look into that
        ORDER BY a.attrelid, a.attnum
    LOOP
        IF drawing.obstacle IS NOT NULL THEN
            RAISE NOTICE 'column % of table % was not looked at for IDs ahead of the clock: %',
                quote_ident(drawing.attname), drawing.tbl, drawing.obstacle USING
                HINT = format('SELECT snowflake_advance(%L, max(%I)%s) FROM %s;', seq, drawing.attname,
                              CASE WHEN epoch_ms <> 1314220021721 THEN format(', %s', epoch_ms) END, drawing.tbl);
            CONTINUE;
        END IF;
        EXECUTE format('SELECT max(%I) FROM %s', drawing.attname, drawing.tbl) INTO newest;
        IF newest >= @extschema@.snowflake_min_id(date_trunc('milliseconds', clock_timestamp()), epoch_ms) THEN
            -- Whoever may write into the table must not take a sequence of others out of use.
            PERFORM snowflake_internal.require_reach(drawing.tbl, drawing.attname, newest, epoch_ms);
            PERFORM @extschema@.snowflake_advance(seq, newest, epoch_ms);
        END IF;
    END LOOP;

    -- CREATE OR REPLACE keeps the OID, the owner, the privileges, and whatever depends on it. The body
    -- is bound to the sequence itself, so a search_path of the function's own is not needed any more.
    EXECUTE format('CREATE OR REPLACE FUNCTION %I.%I(%s) RETURNS bigint LANGUAGE sql VOLATILE PARALLEL UNSAFE %s RETURN %s',
                   old.nspname, old.proname, pg_get_function_arguments(legacy),
                   CASE WHEN old.prosecdef THEN 'SECURITY DEFINER' END,
                   snowflake_internal.call_text(shard, seq, epoch_ms));
    -- A schema can be renamed all the same, and another one be given its name: then that was no replacing.
    IF NOT EXISTS (SELECT FROM snowflake_internal.call_of('pg_proc'::regclass::oid, legacy::oid, 0)) THEN
        RAISE EXCEPTION 'schema % of function % was renamed meanwhile', quote_ident(old.nspname), legacy USING
            ERRCODE = 'object_not_in_prerequisite_state',
            HINT = format('Try again: SELECT snowflake_adopt(%L);', legacy);
    END IF;
END;
$$;
COMMENT ON FUNCTION snowflake_adopt(regprocedure, integer, regclass, bigint) IS
    'replaces an Instagram-style PL/pgSQL function by the native one in place; says what it read out of it, and refuses what it cannot read';
