-- Functions for consumers that read rows in the order of their IDs.
--
--   25001         in REPEATABLE READ or SERIALIZABLE
--   25006         the sequence makes no IDs here: a move or a split has closed it, or it is a copy of Citus
--   55000         on a standby; the column's DEFAULT does not name one shard, sequence and epoch
--   42501, 42809, 42P01, 42703, 22003   no SELECT or USAGE; no sequence; no relation; no column; no shard
--   55P03, 57014, 40P01   lock_timeout; statement_timeout or a cancel; a deadlock, while it waits

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
