-- Functions that read IDs, build them, and bound them by time.

CREATE FUNCTION snowflake_timestamp(id bigint) RETURNS timestamptz
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'snowflake_timestamp';
COMMENT ON FUNCTION snowflake_timestamp(bigint) IS 'the millisecond at which an ID was made';

CREATE FUNCTION snowflake_timestamp(id bigint, epoch_ms bigint) RETURNS timestamptz
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'snowflake_timestamp';
COMMENT ON FUNCTION snowflake_timestamp(bigint, bigint) IS
    'the millisecond at which an ID was made, counted from another epoch (Unix ms)';

CREATE FUNCTION snowflake_shard(id bigint) RETURNS integer
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'snowflake_shard';
COMMENT ON FUNCTION snowflake_shard(bigint) IS 'the logical shard of an ID, 0 to 8191';

CREATE FUNCTION snowflake_seq(id bigint) RETURNS integer
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'snowflake_seq';
COMMENT ON FUNCTION snowflake_seq(bigint) IS 'the counter of an ID, 0 to 1023';

CREATE FUNCTION snowflake_decode(id bigint, OUT created_at timestamptz, OUT shard integer, OUT seq integer)
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'snowflake_decode';
COMMENT ON FUNCTION snowflake_decode(bigint) IS 'time, shard and counter of an ID';

CREATE FUNCTION snowflake_decode(id bigint, epoch_ms bigint, OUT created_at timestamptz, OUT shard integer,
                                 OUT seq integer)
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'snowflake_decode';
COMMENT ON FUNCTION snowflake_decode(bigint, bigint) IS
    'time, shard and counter of an ID, the time counted from another epoch (Unix ms)';

CREATE FUNCTION snowflake_encode(created_at timestamptz, shard integer, seq integer) RETURNS bigint
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'snowflake_encode';
COMMENT ON FUNCTION snowflake_encode(timestamptz, integer, integer) IS
    'the ID of a time, a shard (0 to 8191) and a counter (0 to 1023)';

CREATE FUNCTION snowflake_encode(created_at timestamptz, shard integer, seq integer, epoch_ms bigint) RETURNS bigint
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'snowflake_encode';
COMMENT ON FUNCTION snowflake_encode(timestamptz, integer, integer, bigint) IS
    'the ID of a time, a shard (0 to 8191) and a counter (0 to 1023), with another epoch (Unix ms)';

CREATE FUNCTION snowflake_min_id(ts timestamptz) RETURNS bigint
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'snowflake_min_id';
COMMENT ON FUNCTION snowflake_min_id(timestamptz) IS
    'the smallest ID with a time at or after ts: id >= snowflake_min_id(ts) means snowflake_timestamp(id) >= ts';

CREATE FUNCTION snowflake_min_id(ts timestamptz, epoch_ms bigint) RETURNS bigint
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'snowflake_min_id';
COMMENT ON FUNCTION snowflake_min_id(timestamptz, bigint) IS
    'the smallest ID with a time at or after ts, with another epoch (Unix ms)';

CREATE FUNCTION snowflake_max_id(ts timestamptz) RETURNS bigint
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'snowflake_max_id';
COMMENT ON FUNCTION snowflake_max_id(timestamptz) IS
    'the largest ID with a time at or before ts: id <= snowflake_max_id(ts) means snowflake_timestamp(id) <= ts';

CREATE FUNCTION snowflake_max_id(ts timestamptz, epoch_ms bigint) RETURNS bigint
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'snowflake_max_id';
COMMENT ON FUNCTION snowflake_max_id(timestamptz, bigint) IS
    'the largest ID with a time at or before ts, with another epoch (Unix ms)';

-- Planner support of snowflake_between: its index condition and selectivity.
CREATE FUNCTION snowflake_internal.between_support(internal) RETURNS internal
    LANGUAGE c STRICT AS 'MODULE_PATHNAME', 'snowflake_between_support';

-- LEAKPROOF: it raises no error for any arguments, and so serves a query behind a policy or a security_barrier view.
CREATE FUNCTION snowflake_between(id bigint, from_ts timestamptz, to_ts timestamptz) RETURNS boolean
    LANGUAGE c IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE
    SUPPORT snowflake_internal.between_support
    AS 'MODULE_PATHNAME', 'snowflake_between';
COMMENT ON FUNCTION snowflake_between(bigint, timestamptz, timestamptz) IS
    'whether an ID was made in [from_ts, to_ts); an index on id serves it';
