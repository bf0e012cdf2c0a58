-- From an old next_id() function to the native one, in place. The old function is called and its IDs are looked at; its
-- body is not read. The steps are functions of their own, here and in the two parts after this one.
-- The old function must run as in an INSERT: with the caller's rights and the caller's search_path. So snowflake_adopt()
-- and adopt_call() have no SET clause, and each name and operator in them has its schema.

-- One call of a function that snowflake_adopt() observes.
CREATE TYPE snowflake_internal.observation AS (
    id bigint,           -- the result of the old function
    before timestamptz,  -- the clock before the call
    after timestamptz,   -- the clock after it
    last_value bigint,   -- lastval() after it
    seqs oid[]);         -- the sequences, of those that are possible, with currval() = lastval()

-- snowflake_adopt('schema.function()', shard 0..8191 [, seq] [, epoch_ms])
--
--   42883, 42501  no such function; not the owner of the function or of its sequence
--   42809         it has arguments, or does not return one bigint; seq is no sequence
--   22004, 22003, 42710   the shard is NULL; is none; is another schema's
--   42P13         its IDs are not those of this shard, sequence and epoch: the message shows the observed ones
--   22008         its IDs are negative: its epoch is in the future, or so old that 41 bits have overflowed
--   55000         the sequence cannot hold positions, or is used by others; the function was changed meanwhile
--   25001, 25006  isolation above READ COMMITTED; read-only
--   An error of the old function itself is raised as it is.
CREATE FUNCTION snowflake_adopt(legacy regprocedure, shard integer, seq regclass DEFAULT NULL,
                                epoch_ms bigint DEFAULT NULL)
    RETURNS void LANGUAGE plpgsql VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE
AS $$
DECLARE
    calls snowflake_internal.observation[];
    resume_at bigint;
BEGIN
    IF NOT snowflake_internal.adopt_check(legacy, shard, seq, epoch_ms)
       OR NOT snowflake_internal.adopt_claim(legacy, shard, seq, epoch_ms) THEN
        RETURN;
    END IF;

    -- Two calls show the sequence. It is locked then, and others who draw from it wait.
    calls := ARRAY[snowflake_internal.adopt_call(legacy, seq), snowflake_internal.adopt_call(legacy, seq)];
    seq := snowflake_internal.adopt_sequence(legacy, shard, seq, calls);

    WHILE snowflake_internal.adopt_needs_more(calls) LOOP
        PERFORM pg_catalog.pg_sleep(0.001);
        calls := pg_catalog.array_append(calls, snowflake_internal.adopt_call(legacy, seq));
    END LOOP;

    -- A last call with a far larger value of the sequence: a counter that is wider than its field shows now.
    resume_at := snowflake_internal.adopt_jump(seq);
    calls := pg_catalog.array_append(calls, snowflake_internal.adopt_call(legacy, seq));
    EXECUTE pg_catalog.concat('ALTER SEQUENCE ', seq, ' RESTART WITH ', resume_at);

    epoch_ms := snowflake_internal.adopt_judge(legacy, shard, seq, epoch_ms, calls);
    PERFORM snowflake_internal.adopt_replace(legacy, shard, seq, epoch_ms, calls);
END;
$$;
COMMENT ON FUNCTION snowflake_adopt(regprocedure, integer, regclass, bigint) IS
    'replaces an Instagram-style function by the native one in place, '
    'after it has observed that its IDs are of this shard';

-- The errors of snowflake_adopt() before it waits or calls; false: the function is native already.
CREATE FUNCTION snowflake_internal.adopt_check(legacy regprocedure, shard integer, seq regclass, epoch_ms bigint)
    RETURNS boolean LANGUAGE plpgsql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    old pg_proc;
BEGIN
    SELECT * INTO old FROM pg_proc AS p WHERE p.oid = legacy;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'function % does not exist', coalesce(legacy::oid::text, 'NULL') USING
            ERRCODE = 'undefined_function';
    ELSIF NOT pg_has_role(old.proowner, 'USAGE') THEN
        RAISE EXCEPTION 'must be owner of function %', legacy USING ERRCODE = 'insufficient_privilege';
    ELSIF shard IS NULL THEN
        RAISE EXCEPTION 'the shard of function % must not be NULL', legacy USING ERRCODE = 'null_value_not_allowed';
    END IF;
    PERFORM snowflake_internal.require_read_committed(
        'snowflake_adopt'::text,
        concat_ws(', ', quote_literal(legacy::text), shard, 'seq => ' || quote_literal(seq::text),
                  'epoch_ms => ' || epoch_ms));
    IF EXISTS (SELECT FROM snowflake_internal.call_of('pg_proc'::regclass::oid, legacy::oid, 0)) THEN
        RAISE NOTICE 'function % is native already', legacy;
        RETURN false;
    ELSIF old.prokind <> 'f' OR old.pronargs <> 0 OR old.proretset OR old.prorettype <> 'bigint'::regtype THEN
        RAISE EXCEPTION 'function % is not a function without arguments that returns bigint', legacy USING
            ERRCODE = 'wrong_object_type',
            HINT = snowflake_internal.adopt_attach_text(legacy, shard, NULL,
                                                        coalesce(epoch_ms, snowflake_internal.default_epoch()), NULL);
    END IF;
    RETURN true;
END;
$$;

-- Keeps others from changing the function, its sequence and its tables, until the transaction ends; false: the function is native already.
CREATE FUNCTION snowflake_internal.adopt_claim(legacy regprocedure, shard integer, seq regclass, epoch_ms bigint)
    RETURNS boolean LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    old CONSTANT text := (pg_identify_object('pg_proc'::regclass, legacy, 0)).identity;
    col record;
BEGIN
    PERFORM snowflake_internal.claim_shard(shard, n.nspname)
    FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace WHERE p.oid = legacy;
    -- Functions have no lock, but a row that this transaction wrote cannot be changed by others. The function
    -- becomes VOLATILE in the end anyway.
    EXECUTE format('ALTER FUNCTION %s VOLATILE', old);
    -- This may have waited for a session that adopted the function.
    IF NOT snowflake_internal.adopt_check(legacy, shard, seq, epoch_ms) THEN
        RETURN false;
    END IF;
    -- Tables are locked before sequences.
    FOR col IN SELECT * FROM snowflake_internal.adopt_columns(legacy) AS c WHERE c.obstacle IS NULL LOOP
        EXECUTE format('LOCK TABLE ONLY %s IN ACCESS SHARE MODE', col.tbl);
    END LOOP;
    IF (pg_identify_object('pg_proc'::regclass, legacy, 0)).identity IS DISTINCT FROM old THEN
        RAISE EXCEPTION 'function % was renamed or moved meanwhile', old USING
            ERRCODE = 'object_not_in_prerequisite_state',
            HINT = 'Look for its new name, and try again.';
    END IF;
    IF seq IS NOT NULL THEN
        PERFORM snowflake_internal.adopt_lock(legacy, shard, seq, true);
    END IF;
    RETURN true;
END;
$$;

-- Bigint columns whose DEFAULT calls a function, and why their largest ID is not looked up (NULL: it is).
-- A role that has made a table whose DEFAULT calls the function must not decide an adoption: neither by its
-- rows, policies and locks, nor by code that a query of the table runs. So only tables of the function's
-- owner and of the caller are looked at.
CREATE FUNCTION snowflake_internal.adopt_columns(
        legacy regprocedure, OUT tbl regclass, OUT attnum integer, OUT column_name name, OUT is_own boolean,
        OUT obstacle text)
    RETURNS SETOF record LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
SELECT c.oid, a.attnum, a.attname, o.is_own,
       CASE WHEN NOT o.is_own THEN format('the table belongs to %s', c.relowner::regrole)
            -- the privileges that LOCK TABLE needs
            WHEN NOT (has_schema_privilege(c.relnamespace, 'USAGE') AND has_table_privilege(c.oid, 'SELECT'))
            THEN format('%I may not read it', current_user)
            WHEN NOT EXISTS (SELECT FROM pg_index AS i JOIN pg_class AS x ON x.oid = i.indexrelid
                             WHERE i.indrelid = c.oid AND i.indkey[0] = a.attnum AND i.indpred IS NULL AND i.indisvalid
                               AND x.relam = (SELECT m.oid FROM pg_am AS m WHERE m.amname = 'btree'))
            THEN 'no index begins with it' END
FROM pg_depend AS d
JOIN pg_attrdef AS f ON f.oid = d.objid
JOIN pg_attribute AS a ON a.attrelid = f.adrelid AND a.attnum = f.adnum
JOIN pg_class AS c ON c.oid = a.attrelid
JOIN pg_type AS t ON t.oid = a.atttypid AND t.typoutput = 'int8out'::regproc -- bigint, or a domain over it
JOIN pg_proc AS p ON p.oid = d.refobjid
CROSS JOIN LATERAL (SELECT c.relowner IN (p.proowner, quote_ident(current_user)::regrole) AS is_own) AS o
WHERE d.classid = 'pg_attrdef'::regclass AND d.refclassid = 'pg_proc'::regclass AND d.refobjid = $1
  AND NOT pg_is_other_temp_schema(c.relnamespace) -- nobody else can look into that
ORDER BY c.oid, a.attnum
$$;

-- Puts the sequence past the observed IDs, and the native function in the place of the old one.
CREATE FUNCTION snowflake_internal.adopt_replace(
        legacy regprocedure, shard integer, seq regclass, epoch_ms bigint, calls snowflake_internal.observation[])
        RETURNS void LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    old record;
BEGIN
    RAISE NOTICE 'function %: shard %, sequence %, epoch_ms %', legacy, shard, seq, epoch_ms USING
        DETAIL = 'It was called more than 20 times before that. If it writes anything, it did so each time.';
    PERFORM snowflake_internal.advance(seq, max(c.id), epoch_ms) FROM unnest(calls) AS c;
    PERFORM snowflake_internal.adopt_pass_columns(legacy, seq, epoch_ms);

    -- CREATE OR REPLACE keeps the OID, the owner, the privileges, and the dependents. The body
    -- is bound to the sequence itself, so a search_path of the function's own is not needed any more.
    SELECT n.nspname, p.proname, p.prosecdef INTO old
    FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace WHERE p.oid = legacy;
    EXECUTE format('CREATE OR REPLACE FUNCTION %I.%I(%s) RETURNS bigint '
                   'LANGUAGE sql VOLATILE PARALLEL UNSAFE %s RETURN %s',
                   old.nspname, old.proname, pg_get_function_arguments(legacy),
                   CASE WHEN old.prosecdef THEN 'SECURITY DEFINER' END,
                   snowflake_internal.call_text(shard, seq, epoch_ms));
    -- Schemas can be renamed all the same, and others be given their names.
    IF NOT EXISTS (SELECT FROM snowflake_internal.call_of('pg_proc'::regclass::oid, legacy::oid, 0) AS k
                   WHERE k.seq = $3) THEN
        RAISE EXCEPTION 'the schema of function % or sequence % was renamed meanwhile', legacy, seq USING
            ERRCODE = 'object_not_in_prerequisite_state',
            HINT = format('Try again: SELECT %ssnowflake_adopt(%L, %s);', snowflake_internal.prefix(), legacy, shard);
    END IF;
    -- If no native ID can be made now, this is the error, and not the first INSERT.
    EXECUTE format('SELECT %I.%I()', old.nspname, old.proname);
END;
$$;

-- Puts a sequence past the IDs ahead of the clock in the columns whose DEFAULT calls a function.
-- The new IDs are above the old ones as far as the clock is right. If it was not, and an index shows the
-- largest ID, the sequence is moved past that. The columns that were not looked at are told.
CREATE FUNCTION snowflake_internal.adopt_pass_columns(legacy regprocedure, seq regclass, epoch_ms bigint) RETURNS void
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    more CONSTANT text := CASE WHEN epoch_ms = snowflake_internal.default_epoch() THEN ''
                               ELSE format(', %s', epoch_ms) END;
    col record;
    newest bigint;
BEGIN
    FOR col IN SELECT * FROM snowflake_internal.adopt_columns(legacy) LOOP
        IF col.obstacle IS NOT NULL THEN
            RAISE NOTICE 'column % of table % was not looked at for IDs ahead of the clock: %',
                quote_ident(col.column_name), col.tbl, col.obstacle USING
                HINT = CASE WHEN col.is_own
                            THEN format('SELECT %ssnowflake_advance(%L, max(%I)%s) FROM %s;',
                                        snowflake_internal.prefix(), seq, col.column_name, more, col.tbl)
                            -- In a query by another role code of the table's owner would run with that role's rights.
                            ELSE format('Ask that role for max(%I). If new IDs must be above it: '
                                        'SELECT %ssnowflake_advance(%L, ...%s);',
                                        col.column_name, snowflake_internal.prefix(), seq, more) END;
            CONTINUE;
        END IF;
        SELECT e.largest INTO newest FROM snowflake_internal.column_end(col.tbl, col.attnum, 9223372036854775807) AS e;
        IF newest >= snowflake_internal.min_id(date_trunc('milliseconds', clock_timestamp()), epoch_ms) THEN
            -- A role that may only write into the table must not put the sequence out of use.
            PERFORM snowflake_internal.require_reach(col.tbl, col.column_name, newest, epoch_ms);
            PERFORM snowflake_internal.advance(seq, newest, epoch_ms);
        END IF;
    END LOOP;
END;
$$;
