-- Functions that make IDs.

CREATE FUNCTION snowflake_next_id(shard integer, seq regclass) RETURNS bigint
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_next_id';
COMMENT ON FUNCTION snowflake_next_id(integer, regclass) IS 'next ID of a shard (0 to 8191), drawn from a sequence';

CREATE FUNCTION snowflake_next_id(shard integer, seq regclass, epoch_ms bigint) RETURNS bigint
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_next_id';
COMMENT ON FUNCTION snowflake_next_id(integer, regclass, bigint) IS
    'next ID of a shard (0 to 8191), drawn from a sequence, its time counted from another epoch (Unix ms)';

-- The sequence of the function without arguments. Its value is dumped, like a configuration
-- table's. In a trusted installation the bootstrap superuser would own it: the installing role uses it, and lets
-- others use it. A GRANT would remain in pg_init_privs after that role is dropped.
CREATE SEQUENCE snowflake_id_seq AS bigint;
COMMENT ON SEQUENCE snowflake_id_seq IS 'position of snowflake_next_id(): Unix milliseconds << 10 | counter';
SELECT pg_catalog.pg_extension_config_dump('snowflake_id_seq', '');
ALTER SEQUENCE snowflake_id_seq OWNER TO @extowner@;

CREATE FUNCTION snowflake_next_id() RETURNS bigint
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_next_id_default';
COMMENT ON FUNCTION snowflake_next_id() IS
    'next ID of the shard in the setting snowflake.shard, drawn from snowflake_id_seq';

CREATE FUNCTION snowflake_next_ids(shard integer, seq regclass, n integer) RETURNS SETOF bigint
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_next_ids';
COMMENT ON FUNCTION snowflake_next_ids(integer, regclass, integer) IS
    'n increasing IDs of a shard, drawn from a sequence in blocks';

CREATE FUNCTION snowflake_next_ids(shard integer, seq regclass, n integer, epoch_ms bigint) RETURNS SETOF bigint
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_next_ids';
COMMENT ON FUNCTION snowflake_next_ids(integer, regclass, integer, bigint) IS
    'n increasing IDs of a shard, drawn from a sequence in blocks, their time counted from another epoch (Unix ms)';

CREATE FUNCTION snowflake_advance(seq regclass, past_id bigint) RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_advance';
COMMENT ON FUNCTION snowflake_advance(regclass, bigint) IS
    'makes every later ID of the sequence greater than past_id; never moves it back';

CREATE FUNCTION snowflake_advance(seq regclass, past_id bigint, epoch_ms bigint) RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_advance';
COMMENT ON FUNCTION snowflake_advance(regclass, bigint, bigint) IS
    'makes every later ID of the sequence greater than past_id, read with another epoch (Unix ms); never moves it back';
