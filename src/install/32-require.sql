-- Checks that the functions which make, convert and adopt shards share.

-- Refuses a transaction whose snapshot does not show the commits of others; function and arguments are for the hint.
CREATE FUNCTION snowflake_internal.require_read_committed(function text, arguments text) RETURNS void
    LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    -- A snapshot older than the locks shows an old catalogue, and an old max() of a column.
    IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
        RAISE EXCEPTION '%() cannot run in a % transaction',
            function, upper(current_setting('transaction_isolation')) USING
            ERRCODE = 'active_sql_transaction',
            DETAIL = 'It must see the commits of other sessions until it has its locks.',
            HINT = format('BEGIN ISOLATION LEVEL READ COMMITTED; SELECT %s(%s); COMMIT;', function, arguments);
    END IF;
END;
$$;

-- Whether a sequence of this shape (columns of pg_sequence) can hold positions for ten years to come.
CREATE FUNCTION snowflake_internal.holds_position(seqtypid oid, seqincrement bigint, seqmax bigint) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
SELECT $1 = 'bigint'::regtype AND $2 = 1
       AND $3 >= ((extract(epoch FROM clock_timestamp()) + 315360000) * 1000)::bigint << 10
$$;

-- The statement after which a sequence can hold positions, as a hint; with a condition where its limits may be there on
-- purpose: servers that replicate to each other may share a range by them. A serial column's are those of its type.
CREATE FUNCTION snowflake_internal.reshape_hint(seq regclass) RETURNS text
    LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
SELECT format(CASE WHEN s.seqincrement = 1 AND s.seqmax IN (32767, 2147483647) THEN '%s'
                   ELSE 'If no replication or other program has set these limits: %s If one has, '
                        'draw from another sequence.' END,
              format('ALTER SEQUENCE %s AS bigint INCREMENT BY 1 NO MAXVALUE;', $1))
FROM pg_sequence AS s WHERE s.seqrelid = $1
$$;

-- Whether a sequence has the bounds that Citus gives a copy on a worker.
CREATE FUNCTION snowflake_internal.is_citus_copy(seqmin bigint, seqmax bigint) RETURNS boolean
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'snowflake_is_citus_copy';

-- False for a sequence that snowflake-shard move has closed, and for a copy on a Citus worker: they make no IDs here.
CREATE FUNCTION snowflake_internal.is_open(seqmin bigint, seqmax bigint) RETURNS boolean
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'snowflake_is_open';

-- Whether the database has the record of a move or a split, which set sequences to their end while they close shards.
CREATE FUNCTION snowflake_internal.has_record() RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = 'snowflake_split' OR starts_with(nspname, 'snowflake_move_'))
$$;

-- Refuses a sequence that snowflake-shard move has closed, and a copy on a Citus worker, as a draw does.
CREATE FUNCTION snowflake_internal.require_open(seq regclass) RETURNS void
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

-- Refuses a column with an ID that is further ahead of the clock than new ones may be.
CREATE FUNCTION snowflake_internal.require_reach(tbl regclass, column_name name, largest bigint, epoch_ms bigint)
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

-- The largest value up to a maximum, and the number of NULLs, in a column of the caller's table: by an index that
-- begins with it, or all rows. Plans no query: the planner would evaluate constants in the indexes, statistics and
-- constraints of the table, and so run functions of the roles that made them.
CREATE FUNCTION snowflake_internal.column_end(tbl oid, attnum integer, maximum bigint, OUT largest bigint,
                                              OUT nulls bigint)
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_column_end';
