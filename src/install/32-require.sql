-- What the functions that make and convert shards ask before they begin.

CREATE FUNCTION snowflake_internal.require_read_committed(function text, arguments text) RETURNS void
    LANGUAGE plpgsql STABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    -- With a snapshot older than the locks, neither catalogue nor max() would tell the truth.
    IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
        RAISE EXCEPTION '%() cannot run in a % transaction', function, upper(current_setting('transaction_isolation')) USING
            ERRCODE = 'active_sql_transaction',
            DETAIL = 'It must see what others commit until it has its locks.',
            HINT = format('BEGIN ISOLATION LEVEL READ COMMITTED; SELECT %s(%s); COMMIT;', function, arguments);
    END IF;
END;
$$;
COMMENT ON FUNCTION snowflake_internal.require_read_committed(text, text) IS
    'refuses a transaction whose snapshot does not show what others commit; function and arguments are for the hint';

CREATE FUNCTION snowflake_internal.holds_position(seqtypid oid, seqincrement bigint, seqmax bigint) RETURNS boolean
    LANGUAGE plpgsql STABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    -- a position of ten years from now must fit
    RETURN seqtypid = 'bigint'::regtype AND seqincrement = 1
           AND seqmax >= ((extract(epoch FROM clock_timestamp()) + 315360000) * 1000)::bigint << 10;
END;
$$;
COMMENT ON FUNCTION snowflake_internal.holds_position(oid, bigint, bigint) IS
    'whether a sequence of this shape (columns of pg_sequence) can hold positions for ten years to come';

CREATE FUNCTION snowflake_internal.require_sequence(seq regclass) RETURNS void
    LANGUAGE plpgsql STABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    shape pg_sequence;
BEGIN
    SELECT * INTO shape FROM pg_sequence AS s WHERE s.seqrelid = seq;
    IF NOT FOUND THEN
        RAISE EXCEPTION '% is not a sequence', seq USING ERRCODE = 'wrong_object_type';
    ELSIF NOT snowflake_internal.holds_position(shape.seqtypid, shape.seqincrement, shape.seqmax) THEN
        RAISE EXCEPTION 'sequence % cannot hold a position', seq USING
            ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = format('It is %s with INCREMENT %s and MAXVALUE %s; a position is a bigint that grows by 1024 each millisecond and by 1 each ID.',
                            shape.seqtypid::regtype, shape.seqincrement, shape.seqmax),
            HINT = format('ALTER SEQUENCE %s AS bigint INCREMENT BY 1 NO MAXVALUE;', seq);
    END IF;
END;
$$;
COMMENT ON FUNCTION snowflake_internal.require_sequence(regclass) IS
    'refuses what is no sequence, and a sequence that cannot hold positions for ten years to come';
