\echo Use "ALTER EXTENSION snowflake UPDATE TO '1.1'" to load this file. \quit
-- From 1.0 to 1.1. The parts are those of the install script.

-- The sequence belongs to the role that made the extension, and was granted to it before. Such a grant remains in
-- pg_init_privs after the role is dropped, and pg_dump then revokes it from a number. No statement ends a row there.
ALTER SEQUENCE snowflake_id_seq OWNER TO @extowner@;
REVOKE GRANT OPTION FOR ALL ON SEQUENCE snowflake_id_seq FROM @extowner@;
DELETE FROM pg_catalog.pg_init_privs
WHERE classoid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
  AND objoid OPERATOR(pg_catalog.=) 'snowflake_id_seq'::pg_catalog.regclass;
-- From PostgreSQL 17 on the roles of such a row are dependencies.
DELETE FROM pg_catalog.pg_shdepend
WHERE deptype OPERATOR(pg_catalog.=) 'i' AND classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
  AND objid OPERATOR(pg_catalog.=) 'snowflake_id_seq'::pg_catalog.regclass
  AND dbid OPERATOR(pg_catalog.=) (SELECT oid FROM pg_catalog.pg_database
                                   WHERE datname OPERATOR(pg_catalog.=) pg_catalog.current_database());

-- The comments of internal functions stand in the install script.
COMMENT ON TYPE snowflake_internal.observation IS NULL;
COMMENT ON TYPE snowflake_internal.attach_member IS NULL;
DO $$
DECLARE
    function pg_catalog.regprocedure;
BEGIN
    FOR function IN SELECT p.oid FROM pg_catalog.pg_proc AS p JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) p.pronamespace
                    WHERE n.nspname OPERATOR(pg_catalog.=) 'snowflake_internal' LOOP
        EXECUTE pg_catalog.format('COMMENT ON FUNCTION %s IS NULL', function);
    END LOOP;
END $$;

ALTER TYPE snowflake_internal.attach_member DROP ATTRIBUTE new_type;

DROP FUNCTION snowflake_internal.require_epoch(bigint);
DROP FUNCTION snowflake_internal.reshape_text(regclass);
DROP FUNCTION snowflake_internal.require_sequence(regclass);
DROP FUNCTION snowflake_internal.adopt_is_native(regprocedure);
DROP FUNCTION snowflake_internal.adopt_claim(regprocedure, integer, regclass);
DROP FUNCTION snowflake_internal.adopt_check_users(regprocedure, integer, regclass, boolean);
DROP FUNCTION snowflake_internal.adopt_restart(regclass, bigint);
DROP FUNCTION snowflake_internal.adopt_statement(regprocedure);
DROP FUNCTION snowflake_internal.words_of(text);
DROP FUNCTION snowflake_internal.singulars(text);
DROP FUNCTION snowflake_internal.referring_names(name, name);
DROP FUNCTION snowflake_internal.referrers(oid[], smallint[]);
DROP FUNCTION snowflake_attach(regclass, name, integer, regclass, bigint, text);
DROP FUNCTION snowflake_internal.attach_arguments(regclass, name, integer, regclass, bigint, text);
DROP FUNCTION snowflake_internal.attach_is_done(pg_catalog.pg_attribute, integer, regclass, bigint, boolean);
DROP FUNCTION snowflake_internal.attach_require_table(regclass);
DROP FUNCTION snowflake_internal.attach_require_root(pg_catalog.pg_attribute);
DROP FUNCTION snowflake_internal.attach_require_type(pg_catalog.pg_attribute);
DROP FUNCTION snowflake_internal.attach_scope(regclass, smallint, boolean);
DROP FUNCTION snowflake_internal.attach_lock(snowflake_internal.attach_member[]);
DROP FUNCTION snowflake_internal.attach_alter(snowflake_internal.attach_member[], text);
DROP FUNCTION snowflake_internal.attach_sharing_text(snowflake_internal.attach_member[], integer, regclass, bigint);
DROP FUNCTION snowflake_internal.attach_widens(text);
DROP FUNCTION snowflake_internal.own_referrers(oid, smallint);
DROP FUNCTION snowflake_internal.attach_tell_referrers(snowflake_internal.attach_member[], text);
DROP FUNCTION snowflake_internal.partition_require_owner(regclass);
DROP FUNCTION snowflake_internal.partition_require_count(regclass, timestamptz, timestamptz, interval, bigint);
DROP FUNCTION snowflake_internal.partition_require_step(interval);
DROP FUNCTION snowflake_internal.partition_suffix(timestamptz, interval);
DROP FUNCTION snowflake_internal.partition_require_default(regclass, name, timestamptz, timestamptz, interval, bigint, text);
DROP FUNCTION snowflake_internal.partition_holds(regclass, name, int8range);
DROP FUNCTION snowflake_internal.partition_require_name(regclass, text, text, text);
DROP FUNCTION snowflake_internal.check_shards();
DROP FUNCTION snowflake_internal.check_columns();
DROP FUNCTION snowflake_internal.check_sequences();
DROP FUNCTION snowflake_internal.check_ids();
DROP FUNCTION snowflake_internal.check_defaults();
DROP FUNCTION snowflake_internal.check_functions();
DROP FUNCTION snowflake_internal.check_referrers();
DROP FUNCTION snowflake_internal.checked_calls();

CREATE FUNCTION snowflake_internal.prefix() RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
SELECT format('%I.', n.nspname) FROM pg_extension AS e JOIN pg_namespace AS n ON n.oid = e.extnamespace
WHERE e.extname = 'snowflake' AND n.nspname <> 'public'
$$;

CREATE FUNCTION snowflake_internal.encode(created_at timestamptz, shard integer, seq integer, epoch_ms bigint) RETURNS bigint
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'snowflake_encode';

CREATE FUNCTION snowflake_internal.min_id(ts timestamptz, epoch_ms bigint) RETURNS bigint
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'snowflake_min_id';

CREATE FUNCTION snowflake_internal.time_of(id bigint, epoch_ms bigint) RETURNS timestamptz
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'snowflake_timestamp';

CREATE FUNCTION snowflake_internal.advance(seq regclass, past_id bigint, epoch_ms bigint) RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_advance';

CREATE FUNCTION snowflake_settled_id(shard integer, seq regclass) RETURNS bigint
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_settled_id';
COMMENT ON FUNCTION snowflake_settled_id(integer, regclass) IS
    'the ID at or below which no new row of the sequence can appear; waits for the transactions that have drawn. '
    'Read the rows in the next statement';

CREATE FUNCTION snowflake_settled_id(shard integer, seq regclass, epoch_ms bigint) RETURNS bigint
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_settled_id';
COMMENT ON FUNCTION snowflake_settled_id(integer, regclass, bigint) IS 'the same with another epoch (Unix ms)';

CREATE FUNCTION snowflake_settled_id(tab regclass, col name DEFAULT 'id') RETURNS bigint
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_settled_id_of';
COMMENT ON FUNCTION snowflake_settled_id(regclass, name) IS
    'the same for the shard, the sequence and the epoch in the DEFAULT of a column';

-- Whether an object calls snowflake_settled_id(): it names a sequence and draws nothing from it.
CREATE FUNCTION snowflake_internal.asks_settled(classid oid, objid oid) RETURNS boolean
    LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
SELECT EXISTS (
    SELECT FROM pg_depend AS d
    JOIN pg_proc AS p ON p.oid = d.refobjid AND p.proname = 'snowflake_settled_id'
    JOIN pg_extension AS e ON e.extnamespace = p.pronamespace AND e.extname = 'snowflake'
    WHERE d.classid = $1 AND d.objid = $2 AND d.refclassid = 'pg_proc'::regclass)
$$;

-- LEAKPROOF: it raises no error for any arguments, and so serves a query behind a policy or a security_barrier view.
CREATE OR REPLACE FUNCTION snowflake_between(id bigint, from_ts timestamptz, to_ts timestamptz) RETURNS boolean
    LANGUAGE c IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE
    SUPPORT snowflake_internal.between_support
    AS 'MODULE_PATHNAME', 'snowflake_between';

-- The same for several, until the session ends: the time of a claim grows with the number of shards of the database.
CREATE FUNCTION snowflake_internal.claim_shards(shards integer[], schema_names name[]) RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_claim_shards';

-- Nobody draws from the sequence until the transaction ends; readers do not wait. The right is that of setval().
CREATE FUNCTION snowflake_internal.lock_sequence(seq oid) RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_lock_sequence';

-- The call of snowflake_next_id() as SQL text, for a DEFAULT or a function.
CREATE OR REPLACE FUNCTION snowflake_internal.call_text(shard integer, seq regclass, epoch_ms bigint) RETURNS text
    LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
-- The epoch that the function has of itself is not written.
SELECT format('%s.snowflake_next_id(%s, %L::pg_catalog.regclass%s)', e.extnamespace::regnamespace, $1, $2,
              CASE WHEN $3 <> snowflake_internal.default_epoch() THEN format(', %s::bigint', $3) END)
FROM pg_extension AS e WHERE e.extname = 'snowflake'
$$;

-- Makes settled_id() in the schema of a shard, unless a function of that name is there.
CREATE FUNCTION snowflake_internal.make_settled_id(shard integer, schema_name name, seq regclass, epoch_ms bigint)
    RETURNS void LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    -- A function of that name can be the application's.
    IF to_regprocedure(format('%I.settled_id()', schema_name)) IS NULL THEN
        EXECUTE format('CREATE FUNCTION %I.settled_id() RETURNS bigint LANGUAGE sql VOLATILE PARALLEL UNSAFE RETURN %s',
                       schema_name, replace(snowflake_internal.call_text(shard, seq, epoch_ms),
                                            '.snowflake_next_id(', '.snowflake_settled_id('));
        EXECUTE format('COMMENT ON FUNCTION %I.settled_id() IS %L', schema_name,
                       'ID at or below which no new row can appear: see snowflake_settled_id()');
    END IF;
END;
$$;

CREATE OR REPLACE FUNCTION snowflake_create_shard(shard integer, schema_name name,
                                       epoch_ms bigint DEFAULT snowflake_internal.default_epoch())
    RETURNS void LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    present record;
    found_sequence record;
    sequence regclass;
BEGIN
    PERFORM snowflake_internal.require_read_committed(
        'snowflake_create_shard'::text, format('%s, %L, %s', shard, schema_name, epoch_ms));
    PERFORM snowflake_internal.claim_shard(shard, schema_name);
    -- An epoch in seconds, for example, would be an error of each INSERT. This makes it an error of the caller.
    PERFORM snowflake_internal.encode(clock_timestamp(), 0, 0, epoch_ms);

    IF to_regnamespace(quote_ident(schema_name)) IS NULL THEN
        EXECUTE format('CREATE SCHEMA %I', schema_name);
    ELSIF NOT has_schema_privilege(schema_name, 'CREATE') THEN
        RAISE EXCEPTION 'permission denied for schema %', quote_ident(schema_name) USING
            ERRCODE = 'insufficient_privilege',
            HINT = format('GRANT CREATE ON SCHEMA %I TO %I;', schema_name, current_user);
    END IF;

    -- An existing function is kept if it is the wanted one, and never replaced: DEFAULTs may call it.
    SELECT p.oid::regprocedure AS function, c.shard, c.seq, c.epoch_ms, c.is_plain INTO present
    FROM pg_proc AS p
    LEFT JOIN LATERAL snowflake_internal.call_of('pg_proc'::regclass::oid, p.oid, 0) AS c ON true
    WHERE p.proname = 'next_id' AND p.pronargs = 0 AND p.pronamespace = to_regnamespace(quote_ident(schema_name));
    IF FOUND THEN
        IF present.shard = shard AND present.epoch_ms = epoch_ms AND present.is_plain THEN
            RAISE NOTICE 'schema % is shard % already', quote_ident(schema_name), shard;
            -- Shards of version 1.0 have none.
            PERFORM snowflake_internal.make_settled_id(shard, schema_name, present.seq, epoch_ms);
            RETURN;
        END IF;
        RAISE EXCEPTION 'function % exists already', present.function USING ERRCODE = 'duplicate_function',
            DETAIL = CASE WHEN present.shard IS NULL THEN 'It does not call snowflake_next_id().'
                          ELSE format('It makes IDs of shard %s with epoch_ms %s.', present.shard, present.epoch_ms) END,
            HINT = CASE WHEN present.shard IS NULL
                        THEN format('If it is a PL/pgSQL function of this scheme: SELECT %ssnowflake_adopt(%L, %s).',
                                    snowflake_internal.prefix(), present.function, shard)
                        ELSE 'Choose another schema.' END;
    END IF;

    -- Reuse an existing sequence unless another role owns it: that role could restart it, and IDs would come twice.
    SELECT c.oid::regclass AS name, c.relowner::regrole AS owner, n.nspowner INTO found_sequence
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE c.relname = 'table_id_seq' AND c.relkind = 'S' AND n.nspname = schema_name;
    IF found_sequence.owner NOT IN (found_sequence.nspowner, quote_ident(current_user)::regrole) THEN
        RAISE EXCEPTION 'sequence % belongs to %', found_sequence.name, found_sequence.owner USING
            ERRCODE = 'insufficient_privilege',
            DETAIL = 'Its owner could drop it and make it anew, and IDs would come twice.',
            HINT = format('ALTER SEQUENCE %s OWNER TO %I;', found_sequence.name, current_user);
    END IF;
    EXECUTE format('CREATE SEQUENCE IF NOT EXISTS %I.table_id_seq AS bigint', schema_name);
    sequence := format('%I.table_id_seq', schema_name)::regclass;
    PERFORM snowflake_internal.require_sequence(sequence);
    EXECUTE format('CREATE FUNCTION %I.next_id() RETURNS bigint LANGUAGE sql VOLATILE PARALLEL UNSAFE RETURN %s',
                   schema_name, snowflake_internal.call_text(shard, sequence, epoch_ms));
    EXECUTE format('COMMENT ON FUNCTION %I.next_id() IS %L', schema_name, format('next ID of shard %s', shard));
    PERFORM snowflake_internal.make_settled_id(shard, schema_name, sequence, epoch_ms);
END;
$$;
COMMENT ON FUNCTION snowflake_create_shard(integer, name, bigint) IS
    'makes a schema a logical shard: its sequence table_id_seq and its function next_id(), '
    'for DEFAULTs of all its tables, and settled_id(), for consumers of new rows';

CREATE FUNCTION snowflake_create_shard(shard integer)
    RETURNS void LANGUAGE sql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
    -- Bound here, to these types exactly: the schema can hold functions of others.
    RETURN snowflake_create_shard(shard, pg_catalog.format('shard%s', shard)::pg_catalog.name, snowflake_internal.default_epoch());
COMMENT ON FUNCTION snowflake_create_shard(integer) IS
    'the same, in a schema that is named shard and the number: shard7';

-- Whether a sequence of this shape (columns of pg_sequence) can hold positions for ten years to come.
CREATE OR REPLACE FUNCTION snowflake_internal.holds_position(seqtypid oid, seqincrement bigint, seqmax bigint) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
SELECT $1 = 'bigint'::regtype AND $2 = 1
       AND $3 >= ((extract(epoch FROM clock_timestamp()) + 315360000) * 1000)::bigint << 10
$$;

-- The statement after which a sequence can hold positions, as a hint; with a condition where its limits may be there on
-- purpose: servers that replicate to each other may share a range by them. A serial column's are those of its type.
CREATE OR REPLACE FUNCTION snowflake_internal.reshape_hint(seq regclass) RETURNS text
    LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
SELECT format(CASE WHEN s.seqincrement = 1 AND s.seqmax IN (32767, 2147483647) THEN '%s'
                   ELSE 'If no replication or other program has set these limits: %s If one has, '
                        'draw from another sequence.' END,
              format('ALTER SEQUENCE %s AS bigint INCREMENT BY 1 NO MAXVALUE;', $1))
FROM pg_sequence AS s WHERE s.seqrelid = $1
$$;

-- Whether the database has the record of a move or a split, which set sequences to their end while they close shards.
CREATE FUNCTION snowflake_internal.has_record() RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = 'snowflake_split' OR starts_with(nspname, 'snowflake_move_'))
$$;

-- Refuses a sequence that snowflake-shard move has closed, and a copy on a Citus worker, as a draw does.
CREATE OR REPLACE FUNCTION snowflake_internal.require_open(seq regclass) RETURNS void
    LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'snowflake_require_open';

-- Refuses an object that is no sequence, and a sequence that cannot hold positions for ten years; with this hint.
CREATE FUNCTION snowflake_internal.require_sequence(seq regclass, hint text DEFAULT NULL) RETURNS void
    LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    shape pg_sequence;
BEGIN
    PERFORM snowflake_internal.require_open(seq);
    SELECT * INTO shape FROM pg_sequence AS s WHERE s.seqrelid = seq;
    IF NOT FOUND THEN
        RAISE EXCEPTION '% is not a sequence', seq USING ERRCODE = 'wrong_object_type';
    ELSIF NOT snowflake_internal.holds_position(shape.seqtypid, shape.seqincrement, shape.seqmax) THEN
        RAISE EXCEPTION 'sequence % cannot hold a position', seq USING ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = format('It is %s with INCREMENT %s and MAXVALUE %s; '
                            'a position is a bigint that grows by 1024 each millisecond and by 1 each ID.',
                            shape.seqtypid::regtype, shape.seqincrement, shape.seqmax),
            HINT = coalesce(hint, snowflake_internal.reshape_hint(seq));
    END IF;
END;
$$;

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
CREATE OR REPLACE FUNCTION snowflake_adopt(legacy regprocedure, shard integer, seq regclass DEFAULT NULL,
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

-- The errors of snowflake_adopt() before it waits or calls; false: the function is native already.
CREATE OR REPLACE FUNCTION snowflake_internal.adopt_check(legacy regprocedure, shard integer, seq regclass, epoch_ms bigint)
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

-- Puts the sequence past the observed IDs, and the native function in the place of the old one.
CREATE OR REPLACE FUNCTION snowflake_internal.adopt_replace(
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
CREATE OR REPLACE FUNCTION snowflake_internal.adopt_pass_columns(legacy regprocedure, seq regclass, epoch_ms bigint) RETURNS void
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

-- The one sequence that two calls of a function have drawn from, locked.
CREATE OR REPLACE FUNCTION snowflake_internal.adopt_sequence(
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

-- Makes others who draw from a sequence wait until the transaction ends. Refuses one that native IDs cannot be drawn
-- from, and one that others use, because they get numbers above 2^50 after the adoption; a NOTICE if they are bigint
-- columns and the sequence was given by name. A PL/pgSQL body, or an SQL body in text, does not show which sequences it
-- uses. Any role can name the sequence in a DEFAULT of its own: it decides nothing if its owner may not draw.
CREATE OR REPLACE FUNCTION snowflake_internal.adopt_lock(legacy regprocedure, shard integer, seq regclass, is_given boolean)
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
CREATE OR REPLACE FUNCTION snowflake_internal.adopt_users(
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
CREATE OR REPLACE FUNCTION snowflake_internal.adopt_jump(seq regclass) RETURNS bigint
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

-- Calls a function with the search_path of the caller, and returns the observation.
CREATE OR REPLACE FUNCTION snowflake_internal.adopt_call(legacy regprocedure, seq regclass) RETURNS snowflake_internal.observation
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
AS $$
DECLARE
    named CONSTANT pg_catalog.text := -- with its schema
        (pg_catalog.pg_identify_object('pg_catalog.pg_proc'::pg_catalog.regclass, legacy, 0)).identity;
    seen snowflake_internal.observation;
BEGIN
    EXECUTE pg_catalog.concat('SELECT pg_catalog.clock_timestamp(), ', named, ', pg_catalog.clock_timestamp()')
        INTO seen.before, seen.id, seen.after;
    SELECT d.last_value, d.seqs INTO seen.last_value, seen.seqs FROM snowflake_internal.adopt_drawn(legacy, seq) AS d;
    RETURN seen;
END;
$$;

-- snowflake_attach('schema.table' [, 'column'] [, shard => 0..8191] [, seq => 'schema.sequence'] [, epoch_ms => n]
--                  [, validate => false])
--
-- validate => false: foreign keys are NOT VALID afterwards, and a NOTICE has the statements that validate them.
--
--   42501  not the owner of the table, or of one that refers to it; no right to make or to use the sequence
--   42809  a view, a foreign table, a system catalogue, a partition, an inherited column; seq is no sequence
--   42703, 42804, 428C9   no such column; not bigint, integer or smallint; a generated column
--   55000  no shard; a foreign key to another table's ID; attached with another shard, sequence or epoch; a sequence
--          that others draw from, or that cannot be used; a DEFAULT whose epoch is not known; something in the
--          way, listed with the statements that drop it, and how to save it before; a value so large that new IDs
--          would not be above it within snowflake.max_drift
--   42710, 22003          the shard is another schema's; is none
--   22008, 2200H          the epoch is in the future; is over
--   23502, 25001, 25006   NULLs in the column; isolation above READ COMMITTED; read-only
--   55P03                 others held a table until lock_timeout after the call began: all tables together have that time
--
-- NOTICEs tell the progress: the size before each rewriting, the time after it.
CREATE FUNCTION snowflake_attach(
        tbl regclass, column_name name DEFAULT 'id', shard integer DEFAULT NULL,
        seq regclass DEFAULT NULL, epoch_ms bigint DEFAULT NULL, validate boolean DEFAULT true) RETURNS void
    LANGUAGE plpgsql VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    started CONSTANT timestamptz := clock_timestamp();
    col pg_attribute;
    scope snowflake_internal.attach_member[];
    arguments text;  -- of this call, for hints
    new_call record; -- shard, epoch_ms, and the schema
    new_seq regclass;
    claimed record;
    largest bigint;
BEGIN
    -- Another session may attach, move or rename the table, or give it a foreign key or a view, while this one
    -- waits for a lock. So all is looked at again until nothing is left to wait for.
    LOOP
        col := snowflake_internal.attach_column(tbl, column_name);
        arguments := snowflake_internal.attach_arguments(tbl, column_name, shard, seq, epoch_ms)
                     || CASE WHEN validate IS FALSE THEN ', validate => false' ELSE '' END;
        PERFORM snowflake_internal.require_read_committed('snowflake_attach'::text, arguments);
        IF snowflake_internal.attach_is_done(col, shard, seq, epoch_ms) THEN
            RETURN;
        END IF;
        PERFORM snowflake_internal.attach_require_own_ids(col, shard, epoch_ms);
        scope := snowflake_internal.attach_scope(tbl, col.attnum);
        PERFORM snowflake_internal.attach_require_owner(scope);
        SELECT a.shard, a.epoch_ms, a.schema INTO new_call
        FROM snowflake_internal.attach_shard(col, shard, epoch_ms) AS a;
        -- Lock order: the shard's number, then the tables. A session that holds a table waits only for tables.
        -- A number that is in use is an error before any hint names objects to drop.
        IF claimed IS DISTINCT FROM new_call THEN
            PERFORM snowflake_internal.claim_shard(new_call.shard, new_call.schema);
            claimed := new_call;
            CONTINUE;
        END IF;
        IF epoch_ms IS NULL THEN
            PERFORM snowflake_internal.attach_require_known_epoch(scope, new_call.shard, new_call.epoch_ms, arguments);
        END IF;
        new_seq := snowflake_internal.attach_sequence(scope, new_call.shard, seq, new_call.epoch_ms);
        PERFORM snowflake_internal.attach_require_clear(scope, seq, arguments);
        EXIT WHEN NOT snowflake_internal.attach_lock(scope, started);
    END LOOP;

    largest := snowflake_internal.attach_largest(scope);
    PERFORM snowflake_internal.require_reach(tbl, column_name, largest, new_call.epoch_ms);

    PERFORM snowflake_internal.attach_tell_broken(scope);
    PERFORM snowflake_internal.attach_tell_readers(scope);
    PERFORM snowflake_internal.attach_tell_old(scope, new_seq);
    new_seq := snowflake_internal.attach_prepare_sequence(scope, new_seq, is_given => seq IS NOT NULL);
    -- Serial numbers, read as IDs, lie long before now. This is for a clock that steps back, and for IDs of
    -- a moment ago. A negative number is below every ID.
    IF largest >= 0 THEN
        PERFORM snowflake_internal.advance(new_seq, largest, new_call.epoch_ms);
    END IF;
    PERFORM snowflake_internal.attach_alter(
        scope, snowflake_internal.call_text(new_call.shard, new_seq, new_call.epoch_ms), validate);
END;
$$;
COMMENT ON FUNCTION snowflake_attach(regclass, name, integer, regclass, bigint, boolean) IS
    'gives a column IDs of a shard, the schema''s by default: a sequence of its own or seq, '
    'NOT NULL and DEFAULT snowflake_next_id(); serial, identity and integer columns are converted with their rows, '
    'and integer columns that refer to it by a foreign key with it; '
    'with validate => false foreign keys are left NOT VALID';

-- The arguments of a call of snowflake_attach() as SQL text, for hints; NULL: not given.
CREATE FUNCTION snowflake_internal.attach_arguments(
        tbl regclass, column_name name, shard integer, seq regclass, epoch_ms bigint) RETURNS text
    LANGUAGE sql STABLE CALLED ON NULL INPUT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
SELECT concat_ws(', ', quote_literal(tbl::text), quote_literal(column_name), 'shard => ' || shard,
                 'seq => ' || quote_literal(seq::text), 'epoch_ms => ' || epoch_ms)
$$;

-- Whether a column is attached as asked for, with a NOTICE if it is; an error if it is attached otherwise.
CREATE FUNCTION snowflake_internal.attach_is_done(col pg_catalog.pg_attribute, shard integer, seq regclass,
                                                  epoch_ms bigint)
    RETURNS boolean
    LANGUAGE plpgsql STABLE CALLED ON NULL INPUT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    described CONSTANT text := format('column %I of table %s', col.attname, col.attrelid::regclass);
    old record; -- the native call that the column has
    old_text text;
BEGIN
    SELECT k.* INTO old
    FROM snowflake_internal.call_of('pg_class'::regclass::oid, col.attrelid, col.attnum::integer) AS k;
    IF NOT FOUND OR col.atttypid IN ('integer'::regtype, 'smallint'::regtype) THEN
        RETURN false;
    END IF;
    old_text := concat_ws(', ', coalesce('shard ' || old.shard, 'a shard that is no constant'),
                          'sequence ' || coalesce(old.seq::regclass::text, 'none that is constant'),
                          'epoch_ms ' || nullif(old.epoch_ms, snowflake_internal.default_epoch()),
                          'through ' || old.function::regprocedure);
    IF coalesce(shard, old.shard) IS DISTINCT FROM old.shard OR coalesce(seq, old.seq) IS DISTINCT FROM old.seq
       OR coalesce(epoch_ms, old.epoch_ms) IS DISTINCT FROM old.epoch_ms THEN
        RAISE EXCEPTION '% is attached already: %', described, old_text USING
            ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = format('Asked for is %s.',
                            concat_ws(', ', 'shard ' || shard, 'sequence ' || seq::text, 'epoch_ms ' || epoch_ms)),
            HINT = format('To change it: ALTER TABLE %s ALTER COLUMN %I DROP DEFAULT; SELECT %ssnowflake_attach(%s);',
                          col.attrelid::regclass, col.attname, snowflake_internal.prefix(),
                          snowflake_internal.attach_arguments(col.attrelid::regclass, col.attname, shard, seq, epoch_ms));
    END IF;
    RAISE NOTICE '% is attached already: %', described, old_text;
    RETURN true;
END;
$$;

-- The column that snowflake_attach() is to work on. Its errors are those that the table and the column alone decide.
CREATE OR REPLACE FUNCTION snowflake_internal.attach_column(tbl regclass, column_name name) RETURNS pg_catalog.pg_attribute
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

-- Shard and epoch for a new column: those given, or else those of its schema's function next_id(), or else of the
-- schema's columns; and the schema.
CREATE OR REPLACE FUNCTION snowflake_internal.attach_shard(
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

-- The column itself first, then those of children and partitions, and those that refer to it by foreign keys.
CREATE FUNCTION snowflake_internal.attach_scope(tbl regclass, attnum smallint)
    RETURNS snowflake_internal.attach_member[]
    LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
-- From the column up and down its table's inheritance tree, and along foreign keys to the columns that
-- refer to it, until nothing is added. A column that refers to an ID must be able to hold one, and so must
-- one that refers to that column. A wide column may lie between two narrow ones. The column that it refers to
-- itself is not reached: a bigint may refer to an integer.
WITH RECURSIVE reached AS (
    SELECT a.attrelid, a.attnum, a.attname FROM pg_attribute AS a WHERE a.attrelid = $1 AND a.attnum = $2
    UNION
    SELECT a.attrelid, a.attnum, a.attname
    FROM reached AS r
    CROSS JOIN LATERAL (
        -- Through pg_depend: pg_constraint has no index on confrelid.
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
    -- ALTER TABLE changes the type at the root of a tree, and in all members. A member of two trees has a
    -- row for each. Each lookup uses an index: a tree can have thousands of partitions.
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
SELECT array_agg((t.root, t.attrelid, t.attnum, t.attname, k.is_attached, k.is_narrow)::snowflake_internal.attach_member
                 ORDER BY k.is_attached DESC, t.attrelid <> t.root, t.root, t.attrelid, t.attnum)
FROM tree AS t
JOIN pg_attribute AS a ON a.attrelid = t.attrelid AND a.attnum = t.attnum
JOIN pg_type AS y ON y.oid = a.atttypid
CROSS JOIN LATERAL (
    SELECT t.root = $1 AND t.attname = (SELECT a.attname FROM pg_attribute AS a
                                        WHERE a.attrelid = $1 AND a.attnum = $2) AS is_attached,
           y.typoutput IN ('int4out'::regproc, 'int2out'::regproc) AS is_narrow -- a domain's is that of its base type
) AS k
$$;

-- The foreign keys of narrow columns, on either side, in the order in which they were made.
CREATE FUNCTION snowflake_internal.attach_keys(scope snowflake_internal.attach_member[])
    RETURNS SETOF pg_catalog.pg_constraint
    LANGUAGE sql STABLE STRICT PARALLEL SAFE ROWS 1 SET search_path = pg_catalog, pg_temp AS $$
SELECT DISTINCT ON (f.oid) f.*
FROM unnest($1) AS s
JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = s.tbl AND d.refobjsubid = s.attnum
                   AND d.classid = 'pg_constraint'::regclass
JOIN pg_constraint AS f ON f.oid = d.objid AND f.contype = 'f'
WHERE s.is_narrow
ORDER BY f.oid
$$;

-- The tables that are to be changed, and that this transaction has not locked.
CREATE FUNCTION snowflake_internal.attach_unlocked(scope snowflake_internal.attach_member[])
    RETURNS TABLE (relid oid, name text)
    LANGUAGE sql STABLE STRICT PARALLEL SAFE ROWS 1 SET search_path = pg_catalog, pg_temp AS $$
-- The other tables of foreign keys, too, as ALTER TABLE locks them. It needs no privilege for that, LOCK TABLE does.
SELECT c.oid, c.oid::regclass::text
FROM (SELECT s.tbl::oid FROM unnest($1) AS s WHERE s.is_attached OR s.is_narrow
      UNION
      SELECT e.relid
      FROM snowflake_internal.attach_keys($1) AS f CROSS JOIN LATERAL (VALUES (f.conrelid), (f.confrelid)) AS e(relid)
      WHERE has_table_privilege(e.relid, 'UPDATE, DELETE, TRUNCATE')) AS l(relid)
JOIN pg_class AS c ON c.oid = l.relid AND c.relkind IN ('r', 'p')
WHERE c.oid NOT IN (SELECT k.relation FROM pg_locks AS k
                    WHERE k.pid = pg_backend_pid() AND k.locktype = 'relation' AND k.mode = 'AccessExclusiveLock'
                      AND k.granted
                      AND k.database = (SELECT b.oid FROM pg_database AS b WHERE b.datname = current_database()))
$$;

-- Locks the tables that are to be changed, in tries until lock_timeout after the start; false: all were locked before.
-- No order of the tables is right for all writers: an INSERT locks the referring table first, a transaction that updates
-- the other table before it locks that one first. So a try releases its locks before a client that waits for one of
-- them looks for a deadlock, deadlock_timeout after it began to wait. Only the first lock of a try may take longer: a
-- session that holds no other lock takes part in no deadlock, and only a long wait cancels an autovacuum.
CREATE FUNCTION snowflake_internal.attach_lock(scope snowflake_internal.attach_member[], started timestamptz)
    RETURNS boolean LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    given CONSTANT text := current_setting('lock_timeout');
    call_ends CONSTANT timestamptz := started + nullif(given::interval, '0'); -- NULL: never
    try_time CONSTANT interval := least(current_setting('deadlock_timeout')::interval, nullif(given::interval, '0')) / 4;
    tries integer := 0;
    try_ends timestamptz;
    wait_ends timestamptz;
    next record; -- the table to lock
    missed oid;  -- the table that was not free is the first of the next try
BEGIN
    LOOP
        tries := tries + 1;
        try_ends := clock_timestamp() + try_time;
        wait_ends := call_ends;
        BEGIN
            FOR next IN
                SELECT u.* FROM snowflake_internal.attach_unlocked(scope) AS u
                ORDER BY u.relid IS DISTINCT FROM missed, u.relid::bigint * CASE tries % 2 WHEN 1 THEN -1 ELSE 1 END
            LOOP
                PERFORM set_config('lock_timeout', greatest(0, ceil(
                    1000 * extract(epoch FROM coalesce(wait_ends - clock_timestamp(), '0'))))::text, true);
                EXECUTE format('LOCK TABLE ONLY %s IN ACCESS EXCLUSIVE MODE%s', next.name,
                               CASE WHEN wait_ends <= clock_timestamp() THEN ' NOWAIT' END);
                wait_ends := try_ends;
            END LOOP;
            IF NOT FOUND THEN
                RETURN tries > 1;
            END IF;
            -- Others may have committed a foreign key or a child before the locks were granted.
            scope := snowflake_internal.attach_scope(scope[1].tbl, scope[1].attnum);
            IF EXISTS (SELECT FROM snowflake_internal.attach_unlocked(scope)) THEN
                RAISE lock_not_available;
            END IF;
            PERFORM set_config('lock_timeout', given, true);
            RETURN true;
        EXCEPTION WHEN lock_not_available OR undefined_table THEN -- or renamed
            missed := next.relid;
        END;
        IF clock_timestamp() >= call_ends THEN
            PERFORM snowflake_internal.attach_raise_held(scope, tries, given);
        END IF;
        PERFORM pg_sleep_for(random() * try_time);
        scope := snowflake_internal.attach_scope(scope[1].tbl, scope[1].attnum);
    END LOOP;
END;
$$;

-- The error of tables that others held: their names, and the processes and roles that hold them now.
CREATE FUNCTION snowflake_internal.attach_raise_held(
        scope snowflake_internal.attach_member[], tries integer, lock_timeout text) RETURNS void
    LANGUAGE plpgsql STABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    col CONSTANT snowflake_internal.attach_member := scope[1];
    listed text;
BEGIN
    SELECT string_agg(format('table %s: %s', u.name, coalesce(h.holders, 'free now')), E'\n' ORDER BY u.name COLLATE "C")
    INTO listed
    FROM snowflake_internal.attach_unlocked(scope) AS u
    CROSS JOIN LATERAL (
        SELECT string_agg(DISTINCT coalesce('process ' || k.pid || coalesce(' of role ' || a.usesysid::regrole, ''),
                                            'a prepared transaction'), ', ') AS holders
        FROM pg_locks AS k LEFT JOIN pg_stat_activity AS a ON a.pid = k.pid
        WHERE k.relation = u.relid AND k.granted AND k.pid IS DISTINCT FROM pg_backend_pid()
          AND k.database = (SELECT b.oid FROM pg_database AS b WHERE b.datname = current_database())) AS h;
    RAISE EXCEPTION 'column % of table % is not attached: its tables were not free within lock_timeout (%)',
        quote_ident(col.column_name), col.tbl, lock_timeout USING ERRCODE = 'lock_not_available',
        DETAIL = format(E'Tries: %s. Locks are held on\n%s', tries, listed),
        HINT = 'Attach again when the transactions of these processes have ended, or with a larger lock_timeout.';
END;
$$;

-- Other users of a sequence than the columns that are to be attached: columns, views, functions; natively or not, with which epoch.
CREATE OR REPLACE FUNCTION snowflake_internal.attach_users(seq regclass, scope snowflake_internal.attach_member[])
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

-- Refuses a column whose DEFAULT draws from a sequence that others draw from, too; the hint has the statements to share
-- it, or to part them. Two columns that had their numbers from one sequence expect that no number is in both. With a
-- sequence for each there would be such numbers, so the caller has to decide.
CREATE OR REPLACE FUNCTION snowflake_internal.attach_require_unshared(
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
CREATE OR REPLACE FUNCTION snowflake_internal.attach_require_sequence(
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

-- Makes the sequence if there is none, gives it the shape for positions, and sees to the privileges of the roles that may INSERT.
CREATE OR REPLACE FUNCTION snowflake_internal.attach_prepare_sequence(
        scope snowflake_internal.attach_member[], seq regclass, is_given boolean) RETURNS regclass
    LANGUAGE plpgsql VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    col CONSTANT snowflake_internal.attach_member := scope[1];
    is_new CONSTANT boolean := seq IS NULL;
    identity record;
    roles text;
BEGIN
    -- Before a new sequence is made, so that the name of the identity's is free again.
    SELECT c.relacl, a.attidentity INTO identity
    FROM pg_depend AS d JOIN pg_class AS c ON c.oid = d.objid AND c.relkind = 'S'
    JOIN pg_attribute AS a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
    WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = col.tbl AND d.refobjsubid = col.attnum
      AND d.classid = 'pg_class'::regclass AND d.deptype = 'i';
    IF FOUND THEN
        EXECUTE format('ALTER TABLE %s ALTER COLUMN %I DROP IDENTITY', col.tbl, col.column_name);
        IF identity.attidentity = 'a' THEN
            RAISE NOTICE 'column % of table % was GENERATED ALWAYS, and takes the value of an INSERT or UPDATE from now on',
                quote_ident(col.column_name), col.tbl;
        END IF;
    END IF;
    IF is_new THEN
        seq := snowflake_internal.attach_new_sequence(col.tbl, col.column_name, identity.relacl);
    ELSIF NOT is_given THEN
        EXECUTE format('ALTER SEQUENCE %s AS bigint INCREMENT BY 1 NO MAXVALUE', seq);
    END IF;

    -- A role that may INSERT needs no privilege on an identity's sequence. So it gets one on a new sequence. The
    -- privileges of a sequence that was there stay as they are.
    roles := snowflake_internal.attach_inserters(scope, seq);
    IF roles IS NOT NULL AND is_new THEN
        EXECUTE format('GRANT USAGE ON SEQUENCE %s TO %s', seq, roles);
        RAISE NOTICE 'USAGE on sequence % is granted to % who may INSERT into %', seq, roles, col.tbl;
    ELSIF roles IS NOT NULL THEN
        RAISE NOTICE 'sequence % may not be used by % who may INSERT into %', seq, roles, col.tbl USING
            HINT = format('GRANT USAGE ON SEQUENCE %s TO %s;', seq, roles);
    END IF;
    RETURN seq;
END;
$$;

-- Columns of other tables that hold rows of a table with a narrow column, partition keys, foreign keys to partitions,
-- and triggers of foreign keys, one line each.
CREATE OR REPLACE FUNCTION snowflake_internal.attach_table_obstacles(scope snowflake_internal.attach_member[]) RETURNS SETOF text
    LANGUAGE sql STABLE STRICT PARALLEL SAFE ROWS 1 SET search_path = pg_catalog, pg_temp AS $$
-- ALTER TABLE does not rewrite a row of the table that is stored in a column of another one.
WITH RECURSIVE row_types AS (
    -- The table's row type, and arrays, domains and composites of it.
    SELECT DISTINCT s.tbl, c.reltype AS type
    FROM unnest($1) AS s JOIN pg_class AS c ON c.oid = s.tbl WHERE s.is_narrow
    UNION
    SELECT r.tbl, coalesce(c.reltype, d.objid)
    FROM row_types AS r
    JOIN pg_depend AS d ON d.refclassid = 'pg_type'::regclass AND d.refobjid = r.type
    LEFT JOIN pg_class AS c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid AND c.relkind = 'c'
    WHERE d.classid = 'pg_type'::regclass OR c.oid IS NOT NULL
)
SELECT format('%s holds rows of table %s', pg_describe_object('pg_class'::regclass, d.objid, d.objsubid), r.tbl)
FROM row_types AS r
JOIN pg_depend AS d ON d.refclassid = 'pg_type'::regclass AND d.refobjid = r.type
                   AND d.classid = 'pg_class'::regclass AND d.objsubid > 0
JOIN pg_class AS c ON c.oid = d.objid AND c.relkind IN ('r', 'p', 'm')
UNION ALL
-- The columns of a partition key depend on the table, and the table does not depend on them.
SELECT format('%s is in the partition key', pg_describe_object('pg_class'::regclass, s.tbl, s.attnum))
FROM unnest($1) AS s
JOIN pg_depend AS d ON d.classid = 'pg_class'::regclass AND d.objid = s.tbl AND d.objsubid = s.attnum
                   AND d.refclassid = 'pg_class'::regclass AND d.refobjid = s.tbl AND d.refobjsubid = 0
WHERE s.is_narrow AND d.deptype = 'i'
UNION ALL
-- ALTER TABLE drops the partition's index, which such a key relies on, with the parent's index before the key.
SELECT format('%s refers to a partition, %s', pg_describe_object('pg_constraint'::regclass, f.oid, 0), s.tbl)
FROM unnest($1) AS s
JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = s.tbl AND d.refobjsubid = s.attnum
                   AND d.classid = 'pg_constraint'::regclass
JOIN pg_constraint AS f ON f.oid = d.objid AND f.contype = 'f' AND f.confrelid = s.tbl AND f.conparentid = 0
JOIN pg_class AS x ON x.oid = f.conindid AND x.relispartition
WHERE s.is_narrow
UNION ALL
-- The triggers of a key that is made again are enabled.
SELECT format('%s is not enabled as usual: ALTER TABLE %s ENABLE TRIGGER %I;',
              pg_describe_object('pg_trigger'::regclass, t.oid, 0), t.tgrelid::regclass, t.tgname)
FROM snowflake_internal.attach_keys($1) AS f JOIN pg_trigger AS t ON t.tgconstraint = f.oid AND t.tgenabled <> 'O'
$$;

-- Names the publications of the tables that are to be rewritten, and the transactions with snapshots before that.
CREATE FUNCTION snowflake_internal.attach_tell_readers(scope snowflake_internal.attach_member[]) RETURNS void
    LANGUAGE plpgsql STABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    listed text;
    statements text;
BEGIN
    IF NOT EXISTS (SELECT FROM unnest(scope) AS s WHERE s.is_narrow) THEN
        RETURN;
    END IF;
    SELECT string_agg(DISTINCT format('publication %I has table %s', p.pubname, s.tbl) COLLATE "C", E'\n'),
           string_agg(DISTINCT format('ALTER TABLE %s ALTER COLUMN %I TYPE bigint;', s.tbl, s.column_name)
                      COLLATE "C", E'\n')
    INTO listed, statements
    FROM unnest(scope) AS s
    JOIN pg_class AS c ON c.oid = s.tbl
    JOIN pg_publication AS p ON p.puballtables
        OR EXISTS (SELECT FROM pg_publication_rel AS r WHERE r.prpubid = p.oid AND r.prrelid = s.tbl)
        OR EXISTS (SELECT FROM pg_publication_namespace AS r WHERE r.pnpubid = p.oid AND r.pnnspid = c.relnamespace)
    WHERE s.is_narrow AND c.relpersistence = 'p';
    IF listed IS NOT NULL THEN
        RAISE NOTICE 'a subscription whose columns are integer stops at the first ID' USING
            DETAIL = listed,
            HINT = E'On each subscriber, before an ID is inserted here:\n' || statements;
    END IF;

    -- The rewritten rows have this transaction as their xmin. Our own snapshot is that of the call.
    SELECT string_agg(concat_ws(', ', format('process %s of role %s', a.pid, a.usesysid::regrole),
                                'since ' || date_trunc('second', a.xact_start)), E'\n' ORDER BY a.pid) INTO listed
    FROM pg_stat_activity AS a
    JOIN pg_stat_activity AS o ON o.pid = pg_backend_pid() AND o.datid = a.datid
    WHERE a.pid <> o.pid AND a.usesysid <> 0 AND age(a.backend_xmin) >= age(o.backend_xmin);
    IF listed IS NOT NULL THEN
        RAISE NOTICE 'transactions with older snapshots will see no rows in the rewritten tables, without an error' USING
            DETAIL = listed,
            HINT = 'If they may still read these tables, roll back, and attach when they have ended.';
    END IF;
END;
$$;

-- The change itself: types, NOT NULL and DEFAULT, with a NOTICE before and after each rewriting, and one about the sessions that must reconnect.
CREATE FUNCTION snowflake_internal.attach_alter(
        scope snowflake_internal.attach_member[], default_text text, validate boolean) RETURNS void
    LANGUAGE plpgsql VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    step record;
    started timestamptz;
    rewritten text;
    additions text[] := '{}';
    addition text;
    unchecked text;
BEGIN
    -- ALTER TABLE would check a foreign key each time one of its two tables is rewritten. A role that does not own the
    -- referring table leaves it to that. A key of a partitioned table can be NOT VALID only in PostgreSQL 18 and later.
    FOR step IN
        SELECT f.conrelid::regclass AS tbl, f.conname, pg_get_constraintdef(f.oid) AS definition,
               obj_description(f.oid, 'pg_constraint') AS comment,
               NOT validate AND f.convalidated AND c.relkind = 'r' AND r.relkind = 'r' AS is_left
        FROM snowflake_internal.attach_keys(scope) AS f
        JOIN pg_class AS c ON c.oid = f.conrelid
        JOIN pg_class AS r ON r.oid = f.confrelid
        WHERE f.conparentid = 0 AND pg_has_role(c.relowner, 'USAGE')
        ORDER BY f.oid
    LOOP
        EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', step.tbl, step.conname);
        additions := additions
            || format('ALTER TABLE %s ADD CONSTRAINT %I %s%s', step.tbl, step.conname, step.definition,
                      CASE WHEN step.is_left THEN ' NOT VALID' END)
            || format('COMMENT ON CONSTRAINT %I ON %s IS %L', step.conname, step.tbl, step.comment);
        IF step.is_left THEN
            unchecked := concat_ws(E'\n', unchecked, format('ALTER TABLE %s VALIDATE CONSTRAINT %I;', step.tbl, step.conname));
        END IF;
    END LOOP;
    -- One ALTER TABLE for each tree of tables, with all its columns in it, so that each table is written once.
    FOR step IN
        SELECT s.root,
               string_agg(DISTINCT format('ALTER COLUMN %I TYPE bigint', s.column_name) COLLATE "C", ', ')
                   FILTER (WHERE s.is_narrow) AS widening,
               string_agg(DISTINCT format('ALTER COLUMN %1$I SET NOT NULL, ALTER COLUMN %1$I SET DEFAULT %2$s',
                                          s.column_name, default_text), ', ')
                   FILTER (WHERE s.is_attached) AS attaching,
               (SELECT CASE WHEN count(*) = 0 THEN 'no partitions'
                            ELSE format('%s%s, %s', CASE WHEN count(*) > 1 THEN format('%s tables, ', count(*)) END,
                                        pg_size_pretty(sum(pg_table_size(c.oid))),
                                        CASE WHEN min(c.reltuples) < 0 THEN 'never analyzed'
                                             ELSE format('about %s rows', sum(c.reltuples)::bigint) END) END
                FROM pg_class AS c
                WHERE c.relkind = 'r'
                    AND c.oid IN (SELECT m.tbl FROM unnest(scope) AS m WHERE m.root = s.root AND m.is_narrow)) AS size
        FROM unnest(scope) AS s
        WHERE s.is_attached OR s.is_narrow
        GROUP BY s.root
        ORDER BY s.root
    LOOP
        started := clock_timestamp();
        IF step.widening IS NOT NULL THEN
            RAISE NOTICE 'rewriting table %: %', step.root, step.size;
        END IF;
        EXECUTE format('ALTER TABLE %s %s', step.root, concat_ws(', ', step.widening, step.attaching));
        IF step.widening IS NOT NULL THEN
            RAISE NOTICE 'table % rewritten in % s', step.root,
                round(extract(epoch FROM clock_timestamp() - started), 1);
            rewritten := concat_ws(', ', rewritten, step.root::text);
        END IF;
    END LOOP;
    FOREACH addition IN ARRAY additions LOOP
        EXECUTE addition;
    END LOOP;
    IF unchecked IS NOT NULL THEN
        RAISE NOTICE 'foreign keys are checked for new rows only, until they are validated' USING
            HINT = E'After the commit, while clients read and write:\n' || unchecked;
    END IF;
    IF rewritten IS NOT NULL THEN
        RAISE NOTICE 'open sessions can fail on the changed columns until they reconnect' USING
            DETAIL = 'A PL/pgSQL function that has read one ends with "type of parameter ... '
                     'does not match that when preparing the plan", '
                     'and a prepared SELECT with "cached plan must not change result type".',
            HINT = format('After the commit: ANALYZE %s; and reconnect.', rewritten);
    END IF;
END;
$$;

-- snowflake_create_partitions('schema.table', '2024-01-01', '2025-01-01', '1 month' [, epoch_ms])
--
--   22004, 22023   NULL; no time to make partitions for, or a step that is not positive, of one kind and whole seconds
--   22008          no ID is of that time
--   42501          not the owner of the table
--   42809, 42P17   not partitioned by RANGE of one bigint column; a partition overlaps
--   42P07, 42622   the name of a new partition is taken, or too long
--   55000          the epoch is not known, or not that of the DEFAULT
--   54000          more than 10,000 partitions
--   23514          the default partition holds rows of a new one
CREATE OR REPLACE FUNCTION snowflake_create_partitions(
        parent regclass, from_ts timestamptz, to_ts timestamptz, step interval, epoch_ms bigint DEFAULT NULL)
    RETURNS SETOF regclass
    LANGUAGE plpgsql VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    key CONSTANT name := snowflake_internal.partition_key(parent);
    arguments CONSTANT text := concat_ws(', ', quote_literal(parent::text), quote_literal(from_ts::text),
                                         quote_literal(to_ts::text), quote_literal(step::text),
                                         'epoch_ms => ' || epoch_ms); -- of this call, for hints
    epoch bigint;
    proven regclass;
    new record;
BEGIN
    epoch := snowflake_internal.partition_epoch(parent, key, epoch_ms);
    PERFORM snowflake_internal.partition_require_period(from_ts, to_ts, step, epoch);

    -- As ATTACH PARTITION does: rows are read and written meanwhile, and another call for the table waits.
    EXECUTE format('LOCK TABLE ONLY %s IN SHARE UPDATE EXCLUSIVE MODE', parent);
    proven := snowflake_internal.partition_prove_default(parent, key, (
        SELECT int8range(min(lower(s.ids)), max(upper(s.ids)))
        FROM snowflake_internal.partition_steps(from_ts, to_ts, step, epoch) AS s
        WHERE NOT EXISTS (SELECT FROM snowflake_internal.partitions(parent) AS p WHERE p.ids = s.ids)), arguments);
    FOR new IN
        SELECT s.*, p.partition AS present, p.ids AS present_ids
        FROM snowflake_internal.partition_steps(from_ts, to_ts, step, epoch) AS s
        LEFT JOIN snowflake_internal.partitions(parent) AS p ON p.ids && s.ids
        ORDER BY s.from_ts
    LOOP
        IF new.present IS NULL THEN
            RETURN NEXT snowflake_internal.create_partition(parent, new.name, new.ids);
        ELSIF new.present_ids <> new.ids THEN
            RAISE EXCEPTION 'partition % overlaps the time from % to %', new.present, new.from_ts, new.to_ts USING
                ERRCODE = 'invalid_object_definition',
                DETAIL = (SELECT format('It is of the time from %s to %s.', b.from_ts, b.to_ts)
                          FROM snowflake_internal.times_of(new.present_ids, epoch) AS b),
                HINT = 'Begin where it ends, or end where it begins. '
                       'Steps of days and months are those of the time zone of the session.';
        END IF;
    END LOOP;
    IF proven IS NOT NULL THEN
        EXECUTE format('ALTER TABLE %s DROP CONSTRAINT snowflake_create_partitions', proven);
    END IF;
END;
$$;

-- The time in which IDs are made.
CREATE OR REPLACE FUNCTION snowflake_internal.times_of(ids int8range, epoch_ms bigint, OUT from_ts timestamptz,
                                            OUT to_ts timestamptz)
    LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
-- No ID is negative.
SELECT CASE WHEN lower($1) >= 0 THEN snowflake_internal.time_of(lower($1), $2) ELSE '-infinity' END,
       CASE WHEN upper_inf($1) THEN 'infinity'
            WHEN upper($1) >= 0 THEN snowflake_internal.time_of(upper($1), $2) ELSE '-infinity' END
$$;

-- Refuses times and steps that no partitions can be made for, and too many of them.
CREATE OR REPLACE FUNCTION snowflake_internal.partition_require_period(from_ts timestamptz, to_ts timestamptz, step interval,
                                                            epoch_ms bigint)
    RETURNS void LANGUAGE plpgsql STABLE CALLED ON NULL INPUT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    months integer;
    days integer;
    rest interval;
    first_ts CONSTANT timestamptz := snowflake_internal.time_of(0::bigint, epoch_ms);
    last_ts CONSTANT timestamptz := snowflake_internal.time_of(9223372036854775807, epoch_ms);
BEGIN
    IF from_ts IS NULL OR to_ts IS NULL OR step IS NULL THEN
        RAISE EXCEPTION 'from_ts, to_ts and step of snowflake_create_partitions() must not be null' USING
            ERRCODE = 'null_value_not_allowed',
            HINT = format('SELECT %ssnowflake_create_partitions(''schema.table'', ''2024-01-01'', ''2025-01-01'', ''1 month'');',
                          snowflake_internal.prefix());
    ELSIF NOT isfinite(from_ts) OR NOT isfinite(to_ts) OR from_ts >= to_ts THEN
        RAISE EXCEPTION 'there is no time from % to %', from_ts, to_ts USING ERRCODE = 'invalid_parameter_value',
            DETAIL = 'from_ts must be before to_ts, and both must be finite.',
            HINT = 'For older or younger rows, make a partition FROM (MINVALUE) or TO (MAXVALUE) yourself.';
    ELSIF date_trunc('second', from_ts) <> from_ts THEN
        RAISE EXCEPTION 'from_ts % is no full second', from_ts USING ERRCODE = 'invalid_parameter_value',
            DETAIL = 'The first partition begins at from_ts.',
            HINT = 'Round it down: date_trunc(''month'', now()), for example.';
    END IF;
    IF isfinite(step) THEN
        months := extract(year FROM step) * 12 + extract(month FROM step);
        days := extract(day FROM step);
        rest := step - make_interval(months => months, days => days);
    END IF;
    -- A month and a day have no length of their own, so a mixture is not a step that the name of a partition tells.
    IF NOT isfinite(step) OR months < 0 OR days < 0 OR rest < interval '0' OR date_trunc('second', rest) <> rest
       OR (months > 0)::integer + (days > 0)::integer + (rest > interval '0')::integer <> 1 THEN
        RAISE EXCEPTION 'step % makes no partitions', step USING ERRCODE = 'invalid_parameter_value',
            DETAIL = 'A step is a number of months (and years), or of days (and weeks), '
                     'or of full seconds (and hours), greater than 0.',
            HINT = 'For example interval ''1 month'', interval ''7 days'' or interval ''6 hours''.';
    END IF;

    IF from_ts + step <= first_ts OR to_ts > last_ts THEN
        RAISE EXCEPTION 'the time from % to % is not within the epoch', from_ts, to_ts USING
            ERRCODE = 'datetime_field_overflow',
            DETAIL = format('With epoch_ms %s the first ID is of %s, and the last one of %s.',
                            epoch_ms, first_ts, last_ts),
            HINT = 'Give times between these two, and epoch_ms in milliseconds.';
    -- Steps of a year and more are few, because an epoch has 69 years. Many of them could be no interval.
    ELSIF step < interval '1 year' AND from_ts + 10000 * step < to_ts THEN
        RAISE EXCEPTION 'more than 10000 partitions from % to %', from_ts, to_ts USING
            ERRCODE = 'program_limit_exceeded',
            DETAIL = format('With the step %s the first 10000 end at %s.', step, from_ts + 10000 * step),
            HINT = 'Take a longer step, or make them in several calls.';
    END IF;
END;
$$;

-- The steps from first_ts until last_ts is reached: their times, IDs and ends of names, without empty ones.
CREATE OR REPLACE FUNCTION snowflake_internal.partition_steps(
        first_ts timestamptz, last_ts timestamptz, step interval, epoch_ms bigint,
        OUT from_ts timestamptz, OUT to_ts timestamptz, OUT ids int8range, OUT name text) RETURNS SETOF record
    LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    n integer := 0;
BEGIN
    -- Each step is counted from the first one: a month after January 31 is February 29, two are March 31.
    to_ts := first_ts;
    WHILE to_ts < last_ts LOOP
        from_ts := to_ts;
        n := n + 1;
        to_ts := first_ts + n * step;
        -- A day that a time zone has left out has no length.
        IF from_ts < to_ts THEN
            ids := int8range(snowflake_internal.min_id(from_ts, epoch_ms),
                             snowflake_internal.min_id(to_ts, epoch_ms));
            -- As exact as the step and the time need it, in the time zone of the session: 2024, 2024_05, 2024_05_17,
            -- 2024_05_17_0800. Of an hour that a time zone has twice, the first is named in UTC.
            name := CASE WHEN from_ts::timestamp::timestamptz <> from_ts
                             THEN to_char(from_ts AT TIME ZONE 'UTC', 'YYYY_MM_DD_HH24MISS"_utc"')
                         ELSE to_char(from_ts, CASE
                         WHEN date_trunc('minute', from_ts) <> from_ts THEN 'YYYY_MM_DD_HH24MISS'
                         WHEN date_trunc('day', from_ts) <> from_ts OR step < interval '1 day' THEN 'YYYY_MM_DD_HH24MI'
                         WHEN date_trunc('month', from_ts) <> from_ts OR step < interval '1 month' THEN 'YYYY_MM_DD'
                         WHEN date_trunc('year', from_ts) <> from_ts OR step < interval '1 year' THEN 'YYYY_MM'
                         ELSE 'YYYY' END) END;
            RETURN NEXT;
        END IF;
    END LOOP;
END;
$$;

-- The default partition, with a CHECK constraint by which it has no row of the new partitions, and an error with the
-- statements that move such rows. Without the constraint ATTACH PARTITION reads all rows for each new partition. NULL: no
-- constraint was made. arguments are for the hint.
CREATE FUNCTION snowflake_internal.partition_prove_default(parent regclass, key name, ids int8range, arguments text)
    RETURNS regclass LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    other CONSTANT regclass := (SELECT nullif(k.partdefid, 0) FROM pg_partitioned_table AS k
                                WHERE k.partrelid = parent);
    condition CONSTANT text := format('%1$I >= %2$s AND %1$I < %3$s', key, lower(ids), upper(ids));
    columns text;
BEGIN
    -- ALTER TABLE refuses tables of other owners, and believes a constraint of a foreign table.
    IF other IS NULL
       OR EXISTS (SELECT FROM pg_partition_tree(other) AS t JOIN pg_class AS c ON c.oid = t.relid
                  WHERE c.relkind NOT IN ('r', 'p') OR NOT pg_has_role(c.relowner, 'USAGE')) THEN
        RETURN NULL;
    END IF;
    EXECUTE format('ALTER TABLE %1$s ADD CONSTRAINT snowflake_create_partitions CHECK (%2$I < %3$s OR %2$I >= %4$s)',
                   other, key, lower(ids), upper(ids));
    RETURN other;
EXCEPTION
WHEN object_in_use THEN
    RETURN NULL; -- this transaction has deferred triggers to fire for its rows
WHEN check_violation THEN
    SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) INTO columns
    FROM pg_attribute AS a
    WHERE a.attrelid = parent AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '';
    RAISE EXCEPTION 'the default partition % holds rows of the new partitions', other USING ERRCODE = 'check_violation',
        DETAIL = format('They are those of SELECT * FROM %s WHERE %s.', other, condition),
        HINT = concat_ws(E'\n', 'Move them:', 'BEGIN;',
            format('ALTER TABLE %s DETACH PARTITION %s;', parent, other),
            format('SELECT %ssnowflake_create_partitions(%s);', snowflake_internal.prefix(), arguments),
            format('WITH moved AS (DELETE FROM %s WHERE %s RETURNING %s) '
                   'INSERT INTO %s (%3$s) SELECT %3$s FROM moved;',
                   other, condition, columns, parent),
            format('ALTER TABLE %s ATTACH PARTITION %s DEFAULT;', parent, other),
            'COMMIT;');
END;
$$;

-- Makes a partition of these IDs, with the owner, the access method and the tablespace of its parent.
CREATE OR REPLACE FUNCTION snowflake_internal.create_partition(parent regclass, suffix text, ids int8range) RETURNS regclass
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    described CONSTANT pg_class := (SELECT c FROM pg_class AS c WHERE c.oid = parent);
    relname CONSTANT text := format('%s_%s', described.relname, suffix);
    partition CONSTANT text := format('%s.%I', described.relnamespace::regnamespace, relname);
    bounds CONSTANT text := format('FOR VALUES FROM (%s) TO (%s)', lower(ids), upper(ids));
BEGIN
    -- The server would cut it, and two partitions could get the same name.
    IF octet_length(relname) > current_setting('max_identifier_length')::integer THEN
        RAISE EXCEPTION 'the name % is too long', quote_ident(relname) USING ERRCODE = 'name_too_long',
            DETAIL = format('It has %s bytes; a name has %s at most.', octet_length(relname),
                            current_setting('max_identifier_length')),
            HINT = format('Make the partition under a shorter name: CREATE TABLE ... PARTITION OF %s %s; '
                          'or rename the table.', parent, bounds);
    END IF;
    -- CREATE TABLE ... PARTITION OF would lock the parent against all others. LIKE copies the same properties;
    -- indexes, foreign keys, triggers and identity come with ATTACH.
    EXECUTE format('CREATE TABLE %s (LIKE %s INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING GENERATED '
                   'INCLUDING STORAGE INCLUDING COMPRESSION)%s%s',
                   partition, parent,
                   (SELECT format(' USING %I', m.amname) FROM pg_am AS m WHERE m.oid = described.relam),
                   (SELECT format(' TABLESPACE %I', t.spcname) FROM pg_tablespace AS t
                    WHERE t.oid = described.reltablespace));
    IF described.relowner <> quote_ident(current_user)::regrole THEN
        EXECUTE format('ALTER TABLE %s OWNER TO %s', partition, described.relowner::regrole);
    END IF;
    EXECUTE format('ALTER TABLE %s ATTACH PARTITION %s %s', parent, partition, bounds);
    RETURN partition;
END;
$$;

CREATE TYPE snowflake_internal.finding AS (severity text, object text, problem text, hint text);

-- The calls that are checked, read once for all checks.
-- Citus makes a table for each shard of a distributed table, with the same DEFAULTs. Their rows come with their IDs.
-- Temporary objects of other sessions end with these, and any role may make them.
CREATE FUNCTION snowflake_internal.checked_calls() RETURNS snowflake_internal.call[]
    LANGUAGE plpgsql STABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    calls snowflake_internal.call[];
BEGIN
    EXECUTE 'SELECT array_agg(k) FROM snowflake_internal.calls() AS k WHERE pg_is_other_temp_schema(k.schema) IS NOT TRUE'
        || CASE WHEN to_regprocedure('pg_catalog.relation_is_a_known_shard(regclass)') IS NOT NULL
           THEN ' AND (k.classid <> ''pg_class''::regclass OR NOT pg_catalog.relation_is_a_known_shard(k.objid))' ELSE '' END
        INTO calls;
    RETURN calls;
END;
$$;

-- unnest(), for which the planner expects 10 rows. With SET the function is not inlined.
CREATE FUNCTION snowflake_internal.rows_of(calls snowflake_internal.call[]) RETURNS SETOF snowflake_internal.call
    LANGUAGE sql IMMUTABLE PARALLEL SAFE ROWS 10000 SET search_path = pg_catalog, pg_temp
AS 'SELECT * FROM unnest($1)';

-- Numbers that two schemas use, or a schema and the setting snowflake.shard; numbers that are no shard.
CREATE FUNCTION snowflake_internal.check_shards(calls snowflake_internal.call[]) RETURNS SETOF snowflake_internal.finding
    LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
WITH shards AS MATERIALIZED (
    SELECT k.shard, n.oid AS schema_oid, quote_ident(n.nspname) AS schema, k.seq, k.classid, k.objid, k.objsubid
    FROM snowflake_internal.rows_of($1) AS k JOIN pg_namespace AS n ON n.oid = k.schema
    WHERE k.is_direct AND k.shard IS NOT NULL
      AND n.nspname !~ '^pg_temp_' -- a temporary copy of a table has its DEFAULTs, too
), twice AS (
    SELECT shard FROM shards GROUP BY shard HAVING min(schema_oid) <> max(schema_oid)
)
SELECT 'error', format('shard %s', shard),
       format('schemas %s make IDs of the same shard', string_agg(DISTINCT schema COLLATE "C", ', ')),
       'Give each schema a number of its own; until then both schemas can make the same IDs.'
FROM shards AS s
-- One sequence repeats no ID: without the objects of other schemas that draw from a sequence of the shard's own.
WHERE shard IN (SELECT shard FROM twice)
  AND NOT EXISTS (SELECT FROM shards AS o JOIN pg_class AS c ON c.oid = o.seq AND c.relnamespace = o.schema_oid
                  WHERE o.shard = s.shard AND o.seq = s.seq AND o.schema_oid <> s.schema_oid)
GROUP BY shard HAVING count(DISTINCT schema) > 1
UNION ALL
SELECT 'error', (pg_identify_object(classid, objid, objsubid)).identity, format('shard %s is out of range', shard),
       'A shard number is 0 to 8191.'
FROM shards WHERE shard NOT BETWEEN 0 AND 8191
UNION ALL
SELECT 'error', format('setting %s', s.name),
       format('it is %s, the shard of schema %s', s.shard, string_agg(DISTINCT k.schema COLLATE "C", ', ')),
       format('snowflake_next_id() and the schema make the same IDs. Set a number that SELECT shard FROM %ssnowflake_shards '
              'does not show.', snowflake_internal.prefix())
FROM snowflake_internal.shard_settings() AS s JOIN shards AS k USING (shard)
GROUP BY s.name, s.shard
$$;

-- DEFAULTs, functions and domains that make no IDs, or others than their schema's.
CREATE FUNCTION snowflake_internal.check_columns(calls snowflake_internal.call[]) RETURNS SETOF snowflake_internal.finding
    LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
WITH calls AS MATERIALIZED (SELECT * FROM snowflake_internal.rows_of($1)), strange AS MATERIALIZED (
    SELECT k.*, f.schema AS other
    FROM calls AS k
    LEFT JOIN pg_class AS s ON s.oid = k.seq AND s.relkind = 'S'
    CROSS JOIN LATERAL (SELECT CASE WHEN k.home <> k.schema THEN k.home ELSE s.relnamespace END::regnamespace) AS f(schema)
    WHERE k.classid = 'pg_class'::regclass AND f.schema <> k.schema
      AND k.seq IS DISTINCT FROM (SELECT snowflake_internal.id_seq())
)
SELECT DISTINCT 'error', (pg_identify_object(k.classid, k.objid, k.objsubid)).identity,
       format('the column is of type %s', a.atttypid::regtype),
       'An ID is a bigint: ALTER TABLE ... ALTER COLUMN ... TYPE bigint.'
FROM calls AS k
JOIN pg_attribute AS a ON k.classid = 'pg_class'::regclass AND a.attrelid = k.objid AND a.attnum = k.objsubid
JOIN pg_type AS t ON t.oid = a.atttypid
-- A domain has the output function of its type. Text and numeric hold every ID, floating point rounds it.
WHERE t.typoutput IN ('int2out'::regproc, 'int4out'::regproc, 'float4out'::regproc, 'float8out'::regproc)
UNION ALL
SELECT 'error', (pg_identify_object(classid, objid, objsubid)).identity,
       format('it draws from %s, which is no sequence', seq::regclass),
       'No IDs are made. Name a sequence: snowflake_next_id(5, ''schema.sequence'').'
FROM calls
WHERE is_direct AND seq IS NOT NULL AND CASE WHEN NOT EXISTS (SELECT FROM pg_sequence AS s WHERE s.seqrelid = seq)
      -- A sequence may be younger than the snapshot.
      THEN (pg_identify_object('pg_class'::regclass, seq, 0)).type IS DISTINCT FROM 'sequence' END
UNION ALL
SELECT DISTINCT 'warning', (pg_identify_object(classid, objid, objsubid)).identity,
       'its shard, sequence or epoch is no constant, and cannot be checked',
       'Write them as literals: snowflake_next_id(5, ''schema.sequence'').'
FROM calls
WHERE is_direct
  AND (seq IS NULL OR epoch_ms IS NULL
       -- snowflake_next_id() has its shard from a setting, and means it
       OR shard IS NULL AND seq <> (SELECT snowflake_internal.id_seq()))
UNION ALL
SELECT 'warning', (pg_identify_object(classid, objid, objsubid)).identity,
       format('it makes IDs of the shards %s', array_to_string(array_agg(DISTINCT shard), ', ')),
       'Give each table and function the shard of its schema alone.'
FROM calls WHERE shard IS NOT NULL
GROUP BY classid, objid, objsubid
-- Not again for each column that calls one such function.
HAVING count(DISTINCT shard) > 1 AND (bool_or(is_direct) OR count(DISTINCT function) > 1)
UNION ALL
SELECT DISTINCT 'warning', (pg_identify_object(k.classid, k.objid, k.objsubid)).identity,
       format('it draws from schema %s: shard %s, sequence %s', k.other, coalesce(k.shard::text, '?'),
              coalesce(k.seq::regclass::text, '?')),
       format('A copy of a table (LIKE) has the DEFAULTs of the other. Set one of its own schema: '
              'ALTER TABLE %s ALTER COLUMN %I SET DEFAULT ...;', t.oid::regclass, a.attname)
FROM strange AS k
JOIN pg_class AS t ON t.oid = k.objid AND t.relpersistence <> 't' AND NOT t.relispartition -- rows come through its parent
JOIN pg_attribute AS a ON a.attrelid = k.objid AND a.attnum = k.objsubid
$$;

-- Sequences that cannot hold a position, are ahead of the clock, or are less durable than their tables; and epochs.
CREATE FUNCTION snowflake_internal.check_sequences(calls snowflake_internal.call[]) RETURNS SETOF snowflake_internal.finding
    LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
WITH calls AS MATERIALIZED (SELECT * FROM snowflake_internal.rows_of($1)), sequences AS MATERIALIZED (
    SELECT s.seqrelid, s.seqtypid, s.seqincrement, s.seqmax, c.relpersistence,
           -- Of a value that is not issued yet, too: RESTART WITH, setval(..., false).
           snowflake_internal.stored_ms(v.last_value, k.epoch_ms)
           - floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS lead
    FROM pg_sequence AS s
    JOIN pg_class AS c ON c.oid = s.seqrelid
    -- A sequence with two epochs is an error of its own.
    JOIN (SELECT seq, min(epoch_ms) AS epoch_ms FROM calls GROUP BY seq) AS k ON k.seq = s.seqrelid
    CROSS JOIN LATERAL snowflake_internal.stored_value(s.seqrelid) AS v
    WHERE snowflake_internal.is_open(s.seqmin, s.seqmax)
      -- The fence of a move or a split sets a sequence to its end.
      AND ((v.last_value = s.seqmax) IS NOT TRUE OR NOT (SELECT snowflake_internal.has_record()))
), settings AS (
    SELECT setting::bigint AS max_drift FROM pg_settings WHERE name = 'snowflake.max_drift'
)
SELECT 'error', format('sequence %s', seq::regclass),
       format('its IDs are made with %s epochs: %s', count(DISTINCT epoch_ms),
              string_agg(DISTINCT epoch_ms::text COLLATE "C", ', ')),
       'Use one epoch_ms with one sequence: IDs of two epochs are not in order, and can be the same.'
FROM calls WHERE seq IS NOT NULL AND epoch_ms IS NOT NULL
GROUP BY seq HAVING count(DISTINCT epoch_ms) > 1
UNION ALL
SELECT DISTINCT 'warning', format('epoch_ms %s', epoch_ms),
       format('its last ID is of %s UTC', (timestamp 'epoch' + (epoch_ms + (1::bigint << 40) - 1) * interval '1 ms')),
       'Less than ten years are left. Plan for new tables with a later epoch_ms.'
FROM calls
WHERE epoch_ms BETWEEN -60000000000000
                   AND extract(epoch FROM clock_timestamp()) * 1000 + 315360000000 - (1::bigint << 40)
UNION ALL
SELECT 'error', format('sequence %s', seqrelid::regclass),
       format('it cannot hold a position: it is %s with INCREMENT %s and MAXVALUE %s', seqtypid::regtype, seqincrement,
              seqmax), snowflake_internal.reshape_hint(seqrelid)
FROM sequences
WHERE NOT snowflake_internal.holds_position(seqtypid, seqincrement, seqmax)
UNION ALL
SELECT 'notice', format('sequence %s', s.seqrelid::regclass),
       format('it makes no IDs on this Citus worker: its MINVALUE %s and MAXVALUE %s are those of a copy', s.seqmin,
              s.seqmax), 'Insert through the coordinator; docs/citus.md says how to insert on every node.'
FROM pg_sequence AS s
WHERE s.seqrelid IN (SELECT seq FROM calls) AND snowflake_internal.is_citus_copy(s.seqmin, s.seqmax)
UNION ALL
SELECT 'error', format('sequence %s', seqrelid::regclass), format('the clock is %s s behind it', lead / 1000),
       'No IDs are made until it has caught up to snowflake.max_drift. Set the clock right. If it is right, '
       'the error of snowflake_next_id() has the statements that set the sequence.'
FROM sequences, settings WHERE max_drift >= 0 AND lead > greatest(max_drift, 2000)
UNION ALL
SELECT 'warning', format('sequence %s', seqrelid::regclass), format('the clock is %s s behind it', lead / 1000),
       'IDs go on from the last one at 1024 a millisecond. Look at the clock.'
FROM sequences, settings WHERE lead > 2000 AND (max_drift < 0 OR lead <= max_drift)
UNION ALL
SELECT 'warning', format('sequence %s', s.seqrelid::regclass), format('it is unlogged, and %s is not',
              string_agg(DISTINCT (pg_identify_object(k.classid, k.objid, k.objsubid)).identity COLLATE "C", ', ')),
       format('ALTER SEQUENCE %s SET LOGGED; after a crash only the clock protects its IDs.', s.seqrelid::regclass)
FROM sequences AS s
JOIN calls AS k ON k.seq = s.seqrelid
JOIN pg_class AS c ON k.classid = 'pg_class'::regclass AND c.oid = k.objid
WHERE s.relpersistence = 'u' AND c.relpersistence = 'p'
GROUP BY s.seqrelid
$$;

-- Columns with an index that hold an ID above their sequence: it can come again, if it is ahead of the clock; and
-- columns that hold positions in place of IDs.
CREATE FUNCTION snowflake_internal.check_ids(calls snowflake_internal.call[]) RETURNS SETOF snowflake_internal.finding
    LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
-- An ID of another shard, as replication brings it, cannot come again from this sequence.
WITH compared AS MATERIALIZED (
    SELECT k.objid, k.objsubid, n.shard, k.seq, k.epoch_ms,
           -- Both here: a table is opened once, as the session keeps it for the second look.
           snowflake_internal.id_above(k.objid, k.objsubid, n.shard, s.seqrelid, k.epoch_ms) AS id,
           snowflake_internal.stored_position(k.objid, k.objsubid, k.shard) AS position
    FROM snowflake_internal.rows_of($1) AS k
    CROSS JOIN LATERAL (SELECT k.shard WHERE k.shard IS NOT NULL
                        UNION ALL
                        SELECT DISTINCT g.shard FROM snowflake_internal.shard_settings() AS g
                        WHERE k.shard IS NULL AND k.seq = (SELECT snowflake_internal.id_seq())) AS n
    LEFT JOIN pg_sequence AS s ON s.seqrelid = k.seq AND snowflake_internal.is_open(s.seqmin, s.seqmax)
    WHERE k.classid = 'pg_class'::regclass
), above AS (
    SELECT objid::regclass AS tbl, objsubid, shard, min(id) AS id, min(seq)::regclass AS seq, min(epoch_ms) AS epoch_ms,
           (min(id) >> 23)::numeric + min(epoch_ms) - floor(extract(epoch FROM clock_timestamp()) * 1000) AS lead
    FROM compared
    GROUP BY objid, objsubid, shard
    HAVING bool_and(id IS NOT NULL) -- of several sequences, above all
), settings AS (
    SELECT CASE WHEN min(setting::bigint) >= 0 THEN max(setting::bigint) END AS reach
    FROM pg_settings WHERE name IN ('snowflake.max_drift', 'snowflake.max_lead')
)
SELECT CASE WHEN lead > 0 THEN 'error' ELSE 'notice' END, (pg_identify_object('pg_class'::regclass, tbl, objsubid)).identity,
       format('it holds %s, above sequence %s', id, seq)
       || CASE WHEN lead > 0 THEN format(' and %s ms ahead of the clock', lead) ELSE '' END,
       CASE WHEN lead > reach
            THEN format('New IDs cannot be above it. Give other numbers to the rows of SELECT * FROM %1$s WHERE %2$I > '
                        '%5$ssnowflake_max_id(now(), %3$s) AND %5$ssnowflake_shard(%2$I) = %4$s;', tbl, a.attname,
                        epoch_ms, shard, snowflake_internal.prefix())
            ELSE format('SELECT %ssnowflake_advance(%L, %s%s);', snowflake_internal.prefix(), seq, id,
                        CASE WHEN epoch_ms <> snowflake_internal.default_epoch() THEN format(', %s', epoch_ms) END) END
FROM above JOIN pg_attribute AS a ON a.attrelid = tbl AND a.attnum = objsubid, settings
UNION ALL
SELECT DISTINCT 'warning', (pg_identify_object('pg_class'::regclass, c.objid, c.objsubid)).identity,
       format('it holds %s, which nextval() can have returned: a position of its sequence, and no ID', c.position),
       format('Let clients leave the column to its DEFAULT. SELECT * FROM %s WHERE %I <= %s; shows the rows.',
              c.objid::regclass, a.attname, c.position)
FROM compared AS c JOIN pg_attribute AS a ON a.attrelid = c.objid AND a.attnum = c.objsubid
WHERE c.position IS NOT NULL
$$;

-- Columns whose DEFAULT counts on from an ID: nextval() of a sequence that native IDs were drawn from.
CREATE FUNCTION snowflake_internal.check_defaults(calls snowflake_internal.call[]) RETURNS SETOF snowflake_internal.finding
    LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
WITH calls AS MATERIALIZED (SELECT * FROM snowflake_internal.rows_of($1))
SELECT DISTINCT ON (f.oid) 'error', (pg_identify_object('pg_class'::regclass, c.oid, a.attnum)).identity,
       format('its DEFAULT is nextval() of sequence %s, which holds %s, %s: new values are the numbers after it',
              s.seqrelid::regclass, v.last_value,
              CASE WHEN v.last_value < 1::bigint << 53 THEN 'a position of native IDs' ELSE 'an ID' END),
       format('SELECT %ssnowflake_attach(%s%s);', snowflake_internal.prefix(),
              snowflake_internal.attach_arguments(c.oid, a.attname, NULL, s.seqrelid, nullif(e.epoch_ms, snowflake_internal.default_epoch())),
              CASE WHEN NOT EXISTS (SELECT FROM calls AS k WHERE k.schema = c.relnamespace AND k.is_direct
                                    AND k.shard IS NOT NULL) THEN ', shard => ...' END)
FROM pg_sequence AS s
JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = s.seqrelid
    AND d.classid = 'pg_attrdef'::regclass
JOIN pg_attrdef AS f ON f.oid = d.objid
JOIN pg_class AS c ON c.oid = f.adrelid AND c.relpersistence <> 't'
JOIN pg_attribute AS a ON a.attrelid = f.adrelid AND a.attnum = f.adnum AND a.attinhcount = 0
CROSS JOIN LATERAL snowflake_internal.stored_value(s.seqrelid) AS v
CROSS JOIN (SELECT k.epoch_ms FROM calls AS k WHERE k.epoch_ms IS NOT NULL
            UNION SELECT snowflake_internal.default_epoch()) AS e
WHERE s.seqtypid = 'bigint'::regtype AND snowflake_internal.is_open(s.seqmin, s.seqmax)
  AND s.seqstart < 1::bigint << 45 AND v.last_value >= 1::bigint << 45 -- not large from its start on
  -- nextval() and nothing else. pg_get_expr() would wait for a lock.
  AND f.adbin::text ~ format('^\{(COERCETODOMAIN :arg \{)?FUNCEXPR :funcid %s ', 'nextval(regclass)'::regprocedure::oid)
  -- The extension is younger than 2020. A number of another kind is seldom a time since then.
  AND snowflake_internal.stored_ms(v.last_value, e.epoch_ms)
      BETWEEN 1577836800000 AND extract(epoch FROM clock_timestamp()) * 1000 + 86400000
ORDER BY f.oid, e.epoch_ms <> snowflake_internal.default_epoch(), e.epoch_ms
$$;

-- Functions that may be those of the PL/pgSQL scheme.
CREATE FUNCTION snowflake_internal.check_functions(calls snowflake_internal.call[]) RETURNS SETOF snowflake_internal.finding
    LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
WITH foreigners AS MATERIALIZED (
    SELECT p.oid, p.proname = 'next_id' AND l.lanname = 'plpgsql' AS is_of_scheme
    FROM pg_proc AS p JOIN pg_language AS l ON l.oid = p.prolang
    WHERE p.pronargs = 0 AND p.prorettype = 'bigint'::regtype AND p.prokind = 'f' AND NOT p.proretset AND p.provolatile = 'v'
      AND NOT EXISTS (SELECT FROM snowflake_internal.rows_of($1) AS k WHERE k.classid = 'pg_proc'::regclass AND k.objid = p.oid)
      AND NOT EXISTS (SELECT FROM pg_depend AS e WHERE e.classid = 'pg_proc'::regclass AND e.objid = p.oid AND e.deptype = 'e')
), called AS (
    SELECT p.oid AS function, min(f.oid) AS by_default
    FROM foreigners AS p
    JOIN pg_depend AS u ON u.refclassid = 'pg_proc'::regclass AND u.refobjid = p.oid AND u.classid = 'pg_attrdef'::regclass
    JOIN pg_attrdef AS f ON f.oid = u.objid
    JOIN pg_attribute AS a ON a.attrelid = f.adrelid AND a.attnum = f.adnum
    JOIN pg_type AS t ON t.oid = a.atttypid AND t.typoutput = 'int8out'::regproc -- bigint, or a domain over it
    GROUP BY p.oid
)
SELECT 'notice', p.oid::regprocedure::text,
       coalesce('the DEFAULT of ' || (pg_identify_object('pg_class'::regclass, f.adrelid, f.adnum)).identity
                || ' calls it, and it is not native', 'it is a PL/pgSQL function, with the duplicates of that scheme'),
       format('SELECT %ssnowflake_adopt(%L, shard => ...);', snowflake_internal.prefix(), p.oid::regprocedure)
FROM foreigners AS p
LEFT JOIN called AS c ON c.function = p.oid
LEFT JOIN pg_attrdef AS f ON f.oid = c.by_default
WHERE c.function IS NOT NULL OR p.is_of_scheme
$$;

-- The comparisons of the other functions leave out the relations of which the caller may not read all rows.
CREATE FUNCTION snowflake_internal.check_unread(calls snowflake_internal.call[]) RETURNS SETOF snowflake_internal.finding
    LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
WITH calls AS MATERIALIZED (SELECT * FROM snowflake_internal.rows_of($1)),
reader AS (SELECT rolsuper AS may_all FROM pg_roles WHERE rolname = current_user),
unread (schema, oid, relkind, has_policy) AS (
    SELECT c.relnamespace, c.oid, c.relkind, false
    FROM calls AS k
    JOIN pg_sequence AS s ON s.seqrelid = k.seq AND snowflake_internal.is_open(s.seqmin, s.seqmax)
    JOIN pg_class AS c ON c.oid = k.seq
    WHERE NOT (SELECT may_all FROM reader)
      AND CASE c.relkind WHEN 'S' THEN NOT has_sequence_privilege(c.oid, 'SELECT, USAGE') END
    UNION
    SELECT c.relnamespace, c.oid, c.relkind, p.has
    FROM calls AS k
    JOIN pg_class AS c ON k.classid = 'pg_class'::regclass AND c.oid = k.objid AND c.relkind = 'r'
    CROSS JOIN LATERAL (SELECT has_schema_privilege(c.relnamespace, 'USAGE')
                               AND has_column_privilege(c.oid, k.objsubid::smallint, 'SELECT')) AS p (has)
    WHERE NOT (SELECT may_all FROM reader) AND (NOT p.has OR row_security_active(c.oid))
)
SELECT 'warning', format('schema %s', schema::regnamespace),
       format('not looked at: %s %s', CASE WHEN has_policy THEN format('policies hide rows from role %I in', current_user)
                                           ELSE format('role %I may not read', current_user) END,
              string_agg(name, ', ' ORDER BY name)),
       CASE WHEN has_policy THEN 'Call it as the owner of the tables, or as a role with BYPASSRLS.'
            ELSE concat(CASE WHEN bool_or(relkind = 'r') AND NOT has_schema_privilege(schema, 'USAGE')
                             THEN format('GRANT USAGE ON SCHEMA %s TO %I; ', schema::regnamespace, current_user) END,
                        format('GRANT SELECT ON %s TO %I;', string_agg(name, ', ' ORDER BY name), current_user)) END
FROM (SELECT u.*, u.oid::regclass::text COLLATE "C" AS name FROM unread AS u) AS u
GROUP BY schema, has_policy
$$;

CREATE OR REPLACE FUNCTION snowflake_check(OUT severity text, OUT object text, OUT problem text, OUT hint text)
    RETURNS SETOF record LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
WITH registry AS MATERIALIZED (SELECT snowflake_internal.checked_calls() AS calls)
SELECT c.*
FROM registry AS r
CROSS JOIN LATERAL (SELECT * FROM snowflake_internal.check_shards(r.calls)
                    UNION ALL SELECT * FROM snowflake_internal.check_columns(r.calls)
                    UNION ALL SELECT * FROM snowflake_internal.check_sequences(r.calls)
                    UNION ALL SELECT * FROM snowflake_internal.check_ids(r.calls)
                    UNION ALL SELECT * FROM snowflake_internal.check_defaults(r.calls)
                    UNION ALL SELECT * FROM snowflake_internal.check_functions(r.calls)
                    UNION ALL SELECT * FROM snowflake_internal.check_unread(r.calls)) AS c
ORDER BY c.severity, c.object COLLATE "C", c.problem COLLATE "C"
$$;

-- In a superuser's schema the command works with the rights of a superuser.
-- How code of a role that is no superuser could run with the rights of this session in a superuser's schema, and the
-- statement that ends it; NULL if not. writes: also by writes.
CREATE FUNCTION snowflake_internal.foreign_code(schema oid, writes boolean, OUT problem text, OUT hint text)
    -- PL/pgSQL keeps a generic plan; planning takes ten times the rest, and the command asks for each statement in each shard.
    LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
BEGIN
WITH RECURSIVE superusers AS (
    -- The owner of the database stands for pg_database_owner, its only member.
    SELECT r.oid, r.rolname FROM pg_roles AS r JOIN pg_database AS d ON d.datname = current_database()
    JOIN pg_roles AS a ON a.oid = CASE r.oid WHEN 'pg_database_owner'::regrole THEN d.datdba ELSE r.oid END
    WHERE a.rolsuper),
superusers_schema AS (
    SELECT n.oid, nspname, nspacl, rolname FROM pg_namespace AS n JOIN superusers AS s ON s.oid = nspowner WHERE n.oid = $1),
contents AS (
    SELECT classid, objid FROM pg_depend JOIN superusers_schema AS n ON n.oid = refobjid
    WHERE refclassid = 'pg_namespace'::regclass),
tables AS (
    SELECT c.oid, relnamespace, relowner, relkind, relacl FROM contents JOIN pg_class AS c ON c.oid = objid
    WHERE classid = 'pg_class'::regclass
    UNION -- SQL that names a table reads and changes its children, too
    SELECT c.oid, c.relnamespace, c.relowner, c.relkind, c.relacl
    FROM tables JOIN pg_inherits ON inhparent = tables.oid JOIN pg_class AS c ON c.oid = inhrelid),
-- An ordinary table of another role is no reason: SQL that names it runs its triggers, as any query of that table does.
owned (owner, object) AS (
    SELECT relowner, pg_describe_object('pg_class'::regclass, oid, 0) FROM tables WHERE relkind IN ('v', 'm', 'f')
    OR EXISTS (SELECT FROM pg_inherits JOIN pg_class AS p ON p.oid = inhparent WHERE inhrelid = tables.oid AND p.relowner <> tables.relowner)
    UNION ALL
    SELECT coalesce(proowner, oprowner, typowner), pg_describe_object(classid, objid, 0) FROM contents
    LEFT JOIN pg_proc AS p ON classid = 'pg_proc'::regclass AND p.oid = objid
    LEFT JOIN pg_operator AS o ON classid = 'pg_operator'::regclass AND o.oid = objid
    LEFT JOIN pg_type AS t ON classid = 'pg_type'::regclass AND t.oid = objid AND typtype = 'd'),
privileges (grantee, does, revoked) AS (
    SELECT grantee, 'may create objects in it', format('CREATE ON SCHEMA %I', nspname)
    FROM superusers_schema CROSS JOIN aclexplode(nspacl) WHERE privilege_type = 'CREATE'
    UNION ALL
    -- A cascade of a foreign key fires triggers of the table that refers.
    SELECT grantee, format('may make %s %s', CASE privilege_type WHEN 'TRIGGER' THEN 'triggers on' ELSE 'keys to' END,
                           pg_describe_object('pg_class'::regclass, tables.oid, 0)),
           format('TRIGGER, REFERENCES ON ALL TABLES IN SCHEMA %s', relnamespace::regnamespace) -- of their columns, too
    FROM tables CROSS JOIN LATERAL (SELECT relacl UNION ALL SELECT attacl FROM pg_attribute WHERE attrelid = tables.oid) AS a (acl)
    CROSS JOIN aclexplode(acl) WHERE writes AND relkind <> 'S' AND privilege_type IN ('TRIGGER', 'REFERENCES')),
fired (owner, object) AS (
    SELECT proowner, pg_describe_object('pg_trigger'::regclass, g.oid, 0)
    FROM tables JOIN pg_trigger AS g ON tgrelid = tables.oid JOIN pg_proc AS p ON p.oid = tgfoid WHERE writes
    UNION ALL
    SELECT c.relowner, pg_describe_object('pg_class'::regclass, c.oid, 0) || ', which refers to it'
    FROM tables JOIN pg_trigger AS g ON tgrelid = tables.oid JOIN pg_class AS c ON c.oid = tgconstrrelid WHERE writes),
reasons (text, hint) AS (
    SELECT format('%s %s', CASE grantee WHEN 0 THEN 'every role' ELSE format('role %I', pg_get_userbyid(grantee)) END, does),
           format('REVOKE %s FROM %s;', revoked,
                  CASE grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END)
    FROM privileges WHERE grantee NOT IN (SELECT oid FROM superusers)
    UNION ALL
    SELECT format('role %I owns %s', pg_get_userbyid(owner), object), NULL
    FROM (TABLE owned UNION ALL TABLE fired) AS o WHERE owner NOT IN (SELECT oid FROM superusers))
SELECT format('schema %I belongs to superuser %I, and %s: code of that role would run with the rights of a superuser',
              nspname, rolname, r.text),
       concat_ws(' Or: ', r.hint, format('ALTER SCHEMA %I OWNER TO ...; gives it to a role that is no superuser.', nspname))
INTO problem, hint
FROM reasons AS r, superusers_schema
WHERE current_setting('is_superuser') = 'on'
ORDER BY r.text LIMIT 1;
END;
$$;

-- The same for a query with $1 and $2.
CREATE FUNCTION snowflake_internal.columns_as_owner(schema regnamespace, query text, first bigint, second bigint,
                                                    OUT name text, OUT type oid)
    RETURNS SETOF record LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_columns_as_owner';

CREATE FUNCTION snowflake_internal.rows_as_owner(schema regnamespace, query text, first bigint, second bigint)
    RETURNS SETOF record LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_rows_as_owner';

-- Number of a table's rows and the sum of their hashes, for the comparison of two servers, read as
-- rows_as_table_owner() reads them; null where hashes do not do.
CREATE FUNCTION snowflake_internal.digest(tbl regclass, OUT rows bigint, OUT digest bigint)
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_digest';

-- Whether a script is more than comments; whether a statement of it begins or ends a transaction.
CREATE FUNCTION snowflake_internal.has_statements(statements text) RETURNS boolean
    LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'snowflake_has_statements';

CREATE FUNCTION snowflake_internal.ends_transaction(statements text) RETURNS boolean
    LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'snowflake_ends_transaction';

-- Whether run_as_owner() works with the caller's rights there; the errors of that function.
CREATE FUNCTION snowflake_internal.is_callers(schema regnamespace) RETURNS boolean
    LANGUAGE c STABLE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_is_callers';

-- The search_path for a statement that runs by itself in a schema, if no other code than the caller's can run in it.
CREATE FUNCTION snowflake_internal.path_of_statement(schema regnamespace, statement text) RETURNS text
    LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    may_all CONSTANT boolean := snowflake_internal.is_callers(schema); -- it locks the schema
    schema_row record;
BEGIN
    SELECT nspname, CASE nspowner WHEN 'pg_database_owner'::regrole THEN datdba ELSE nspowner END AS owner INTO schema_row
    FROM pg_namespace AS n JOIN pg_database AS d ON datname = current_database() WHERE n.oid = schema;
    IF NOT may_all AND NOT snowflake_internal.is_maintenance(statement) THEN
        RAISE insufficient_privilege USING
            MESSAGE = format('schema %I belongs to role %I, whose code could run with the rights of role %I in this statement',
                             schema_row.nspname, pg_get_userbyid(schema_row.owner), current_user),
            HINT = format('Connect as role %I. Without that, VACUUM, ANALYZE, REINDEX, DROP INDEX CONCURRENTLY are possible, '
                          'and CREATE INDEX CONCURRENTLY with each text constant as ''x''::text: PostgreSQL runs these as the '
                          'owner of the table.', pg_get_userbyid(schema_row.owner));
    END IF;
    RETURN quote_ident(schema_row.nspname);
END;
$$;

-- As run_guarded(); CREATE OR REPLACE FUNCTION replaces these functions, and makes no other; each must belong to its owner.
CREATE FUNCTION snowflake_internal.replace_guarded(statements text, functions oid[], owners oid[]) RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_replace_guarded';

-- Inserts rows in a format of COPY, with the rights of the table's owner; returns their number.
CREATE FUNCTION snowflake_internal.copy_rows(tbl regclass, columns text[], format text, rows bytea) RETURNS bigint
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_copy_rows';
REVOKE EXECUTE ON FUNCTION snowflake_internal.copy_rows(regclass, text[], text, bytea) FROM PUBLIC;

-- Whether rows that replication writes are checked by a foreign key, too; for the owner of its table.
CREATE FUNCTION snowflake_internal.fire_key(key oid, always boolean) RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_fire_key';

CREATE FUNCTION snowflake_internal.shards(
        OUT schema oid, OUT shard integer, OUT function oid, OUT seq oid, OUT epoch_ms bigint)
    RETURNS SETOF record LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT n.oid, s.shard, s.function::pg_catalog.oid, s.seq::pg_catalog.oid, s.epoch_ms
    FROM snowflake_shards AS s JOIN pg_catalog.pg_namespace AS n ON n.nspname OPERATOR(pg_catalog.=) s.schema_name;
END;

CREATE FUNCTION snowflake_internal.sequences(OUT seq oid, OUT shard integer, OUT last_id_at timestamptz)
    RETURNS SETOF record LANGUAGE sql VOLATILE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT s.seq::pg_catalog.oid, s.shard, s.last_id_at FROM snowflake_sequences AS s;
END;

-- Those of snowflake-shard verify: errors of snowflake_check(), and relations that it could not read.
CREATE FUNCTION snowflake_internal.findings(OUT severity text, OUT object text, OUT problem text, OUT hint text)
    RETURNS SETOF record LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT * FROM snowflake_check() AS c
    WHERE c.severity OPERATOR(pg_catalog.=) 'error' OR pg_catalog.starts_with(c.problem, 'not looked at: ');
END;

CREATE FUNCTION snowflake_internal.id_seq() RETURNS oid
    LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    RETURN 'snowflake_id_seq'::pg_catalog.regclass::pg_catalog.oid;

CREATE FUNCTION snowflake_internal.settled_id(shard integer, seq regclass, epoch_ms bigint) RETURNS bigint
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_settled_id';

-- Bytes of a relation, by its row of pg_class: the relation is neither opened nor locked.
CREATE FUNCTION snowflake_internal.file_size(tablespace oid, file oid) RETURNS bigint
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_file_size';

-- Statements in hints name the schema of the extension.
CREATE OR REPLACE FUNCTION snowflake_internal.require_reach(tbl regclass, column_name name, largest bigint, epoch_ms bigint)
    RETURNS void LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    max_drift bigint;
    max_lead bigint;
    lead bigint;
BEGIN
    -- A number that is no ID of this epoch can be far in the future, read as one. With its sequence behind
    -- such a number the generator would refuse each INSERT until the clock has reached it.
    SELECT min(p.setting::bigint) FILTER (WHERE p.name = 'snowflake.max_drift'),
           min(p.setting::bigint) FILTER (WHERE p.name = 'snowflake.max_lead')
    INTO max_drift, max_lead FROM pg_settings AS p;
    lead := (largest >> 23) + epoch_ms - floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint;
    IF largest > 0 AND max_drift >= 0 AND lead > greatest(max_drift, max_lead) THEN
        RAISE EXCEPTION 'column % of table % holds %: new IDs cannot be above that',
            quote_ident(column_name), tbl, largest USING
            ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = format('Read as an ID it is of a time %s ms from now; snowflake.max_drift is %s ms.',
                            lead, max_drift),
            HINT = format('Give other numbers to the rows of SELECT * FROM %s WHERE %I > %ssnowflake_max_id(now(), %s);',
                          tbl, column_name, snowflake_internal.prefix(), epoch_ms);
    END IF;
END;
$$;

CREATE OR REPLACE FUNCTION snowflake_internal.adopt_judge_fields(
        legacy regprocedure, shard integer, calls snowflake_internal.observation[], instead text) RETURNS void
    LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    first_shard CONSTANT bigint := (calls[1].id >> 10) & 8191;
    seen snowflake_internal.observation := calls[1];
    detail text;
BEGIN
    -- All 23 bits: a counter that is wider than its field changes the shard.
    SELECT c.* INTO seen FROM unnest(calls) AS c
    ORDER BY (c.id & 8388607) <> ((first_shard << 10) | (c.last_value & 1023)) DESC, c.before LIMIT 1;
    detail := format('With lastval() = %s it returned %s: shard %s, counter %s.',
                     seen.last_value, seen.id, (seen.id >> 10) & 8191, seen.id & 1023);
    IF (seen.id & 8388607) <> ((first_shard << 10) | (seen.last_value & 1023)) THEN
        RAISE EXCEPTION 'function %: the counter is not lastval() %% 1024', legacy USING
            ERRCODE = 'invalid_function_definition',
            DETAIL = detail,
            HINT = concat_ws(E'\n',
                             'If its shard is shifted by 10 bits, write nextval(...) % 1024 for the counter, '
                             'and adopt it then.', instead);
    ELSIF first_shard <> shard THEN
        RAISE EXCEPTION 'function %: IDs carry shard %, not %', legacy, first_shard, shard USING
            ERRCODE = 'invalid_function_definition',
            DETAIL = detail,
            HINT = format('If that is its shard: SELECT %ssnowflake_adopt(%L, %s);', snowflake_internal.prefix(), legacy, first_shard);
    END IF;
END;
$$;

CREATE OR REPLACE FUNCTION snowflake_internal.adopt_attach_text(
        legacy regprocedure, shard integer, seq regclass, epoch_ms bigint, calls snowflake_internal.observation[])
        RETURNS text
    LANGUAGE plpgsql STABLE CALLED ON NULL INPUT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    statements text;
BEGIN
    -- Not the last call: see adopt_judge().
    IF (SELECT max(c.id >> 23) FROM unnest(calls[:cardinality(calls) - 1]) AS c)
       > floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - epoch_ms THEN
        RETURN 'Its IDs are larger than native ones of today: a column of them cannot go on with native IDs.';
    END IF;
    -- Two schemas cannot have one shard: snowflake_attach() asks for it then.
    SELECT string_agg(format('SELECT %ssnowflake_attach(%s);', snowflake_internal.prefix(), snowflake_internal.attach_arguments(
                          c.tbl, c.attname, CASE WHEN c.is_one_schema THEN shard END, seq, epoch_ms)),
                      E'\n' ORDER BY c.tbl::text COLLATE "C", c.attnum) INTO statements
    FROM (SELECT t.oid::regclass AS tbl, a.attname, a.attnum,
                 min(t.relnamespace) OVER () = max(t.relnamespace) OVER () AS is_one_schema
          FROM pg_depend AS d
          JOIN pg_attrdef AS f ON f.oid = d.objid
          JOIN pg_attribute AS a ON a.attrelid = f.adrelid AND a.attnum = f.adnum AND a.attinhcount = 0
          JOIN pg_class AS t ON t.oid = a.attrelid AND t.relpersistence <> 't'
          WHERE d.classid = 'pg_attrdef'::regclass AND d.refclassid = 'pg_proc'::regclass AND d.refobjid = legacy) AS c;
    RETURN concat_ws(E'\n',
        'A column whose DEFAULT calls it can be attached: its IDs stay, and new ones are above them. '
        'If its IDs are milliseconds << 23 of another epoch, give that as epoch_ms.',
        coalesce(statements, format('SELECT %ssnowflake_attach(table, column, %s);', snowflake_internal.prefix(),
                                    concat_ws(', ', 'shard => ' || shard, 'seq => ' || quote_literal(seq::text),
                                              'epoch_ms => ' || epoch_ms))));
END;
$$;

CREATE OR REPLACE FUNCTION snowflake_internal.attach_require_own_ids(col pg_catalog.pg_attribute, shard integer, epoch_ms bigint)
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

CREATE OR REPLACE FUNCTION snowflake_internal.attach_require_known_epoch(
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
                    format('SELECT %ssnowflake_adopt(%L, shard => %s) finds the epoch out, and makes the function native for '
                           'all columns that use it.', snowflake_internal.prefix(), old.function, shard) END,
                format('To attach only this column, name the epoch of its IDs: '
                       'SELECT %ssnowflake_attach(%s, epoch_ms => ...);', snowflake_internal.prefix(), arguments));
    END IF;
END;
$$;

CREATE OR REPLACE FUNCTION snowflake_internal.attach_clear_text(scope snowflake_internal.attach_member[], arguments text)
    RETURNS text LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
-- If all of it is pasted into psql, the transaction stays open: nothing is lost.
WITH objects AS (
    -- An object can be reached on several ways. The longest tells when to drop it: before the objects it depends on.
    SELECT d.drop_text, max(d.depth) AS depth,
           -- The pattern by which pg_dump -t selects the object. It has no option for a function, or for a table in a
           -- publication.
           CASE WHEN o.type NOT IN ('function', 'procedure', 'publication relation')
                THEN format('%I.%I', o.object_names[1], o.object_names[2]) END AS pattern,
           o.type <> 'index' AS is_selected -- comes with its materialized view
    FROM snowflake_internal.attach_dependents($1) AS d
    CROSS JOIN LATERAL pg_identify_object_as_address(d.classid, d.objid, 0) AS o
    WHERE d.drop_text IS NOT NULL
    GROUP BY d.drop_text, o.type, o.object_names
)
SELECT concat_ws(E'\n',
    '-- 1. In a shell, save the definitions of the dropped objects, with owners, privileges and comments:',
    format('--    pg_dump --schema-only --strict-names%s -f before.sql %s',
           CASE WHEN bool_and(o.pattern IS NOT NULL) THEN
               string_agg(DISTINCT ' -t ' || snowflake_internal.shell_quote(o.pattern) COLLATE "C", '')
                   FILTER (WHERE o.is_selected) END,
           snowflake_internal.shell_quote(current_database())),
    '-- 2. Drop it and attach, in one transaction:',
    'BEGIN;',
    string_agg(o.drop_text, E'\n' ORDER BY o.depth DESC, o.drop_text COLLATE "C"),
    format('SELECT %ssnowflake_attach(%s);', snowflake_internal.prefix(), $2),
    '-- 3. Run from before.sql the statements that create the dropped objects, and no others: the file can have the '
        'old',
    '--    DEFAULT, too. REFRESH materialized views. Then COMMIT;')
FROM objects AS o
HAVING count(*) > 0
$$;

CREATE OR REPLACE FUNCTION snowflake_internal.partition_key(parent regclass) RETURNS name
    LANGUAGE plpgsql STABLE CALLED ON NULL INPUT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    target record;
BEGIN
    IF parent IS NULL THEN
        RAISE EXCEPTION 'the table of snowflake_create_partitions() must not be null' USING
            ERRCODE = 'null_value_not_allowed',
            HINT = format('SELECT %ssnowflake_create_partitions(''schema.table'', ''2024-01-01'', ''2025-01-01'', ''1 month'');',
                          snowflake_internal.prefix());
    END IF;
    SELECT k.partstrat, k.partnatts, a.attname, t.typoutput,
           CASE WHEN k.partnatts = 1 THEN format_type(a.atttypid, a.atttypmod) END AS type INTO target
    FROM pg_class AS c
    LEFT JOIN pg_partitioned_table AS k ON k.partrelid = c.oid
    LEFT JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = k.partattrs[0] AND a.attnum > 0 -- 0: an expression
    LEFT JOIN pg_type AS t ON t.oid = a.atttypid
    WHERE c.oid = parent;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'table with OID % does not exist', parent::oid USING
            ERRCODE = 'undefined_table',
            HINT = 'Give a table by its name: ''schema.table''::regclass.';
    ELSIF target.partstrat = 'r' AND target.partnatts = 1
          AND target.typoutput = 'int8out'::regproc THEN -- or a domain over bigint
        RETURN target.attname;
    END IF;
    RAISE EXCEPTION '% is not partitioned by RANGE of one bigint column',
        pg_describe_object('pg_class'::regclass, parent, 0) USING
        ERRCODE = 'wrong_object_type',
        DETAIL = coalesce('Its partition key is ' || pg_get_partkeydef(parent)
                          || coalesce(', of type ' || target.type, '') || '.',
                          'It has no partition key.'),
        HINT = 'CREATE TABLE ... (id bigint PRIMARY KEY, ...) PARTITION BY RANGE (id);';
END;
$$;

CREATE OR REPLACE FUNCTION snowflake_internal.partition_epoch(parent regclass, key name, epoch_ms bigint) RETURNS bigint
    LANGUAGE plpgsql STABLE CALLED ON NULL INPUT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    described CONSTANT text := format('column %I of table %s', key, parent);
    made bigint[]; -- the epochs of the DEFAULT; NULL: one that is no constant
    known bigint[];
BEGIN
    -- A row that is inserted into a table gets the DEFAULT of that table, and not that of its partition.
    SELECT array_agg(DISTINCT k.epoch_ms) INTO made
    FROM pg_partition_ancestors(parent) AS t(tbl)
    JOIN pg_attribute AS a ON a.attrelid = t.tbl AND a.attname = key
    CROSS JOIN LATERAL snowflake_internal.call_of('pg_class'::regclass::oid, t.tbl::oid, a.attnum::integer) AS k;

    known := array_remove(made, NULL);
    IF cardinality(known) > 1 THEN
        RAISE EXCEPTION '% makes IDs of several epochs', described USING
            ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = format('They are %s; the bounds of a partition are of one.', array_to_string(known, ', ')),
            HINT = format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT ...', pg_partition_root(parent), key);
    ELSIF known[1] <> epoch_ms THEN
        RAISE EXCEPTION '% makes IDs of another epoch than epoch_ms %', described, epoch_ms USING
            ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = format('Its DEFAULT has epoch_ms %s.', known[1]),
            HINT = 'Leave epoch_ms out.';
    ELSIF epoch_ms IS NULL AND (made IS NULL OR cardinality(known) < cardinality(made)) THEN
        RAISE EXCEPTION 'the epoch of % is not known', described USING
            ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = CASE WHEN made IS NULL THEN 'Its DEFAULT makes no IDs.'
                          ELSE 'The epoch_ms of its DEFAULT is no constant.' END,
            HINT = concat_ws(' ',
                             format('Give the epoch of its IDs, for example epoch_ms => %s.', snowflake_internal.default_epoch()),
                             CASE WHEN made IS NULL
                                 THEN format('If they shall be made here: SELECT %ssnowflake_attach(%L, %L);', snowflake_internal.prefix(),
                                             pg_partition_root(parent), key) END);
    END IF;
    RETURN coalesce(epoch_ms, known[1]);
END;
$$;
