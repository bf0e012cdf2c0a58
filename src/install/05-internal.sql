-- The schema of the functions that only the extension's own functions call. Its name is fixed, so that no search_path
-- decides which of them is called. A schema of that name that exists already is an error. The public functions run with
-- the caller's rights, so every role needs USAGE. Nobody is granted CREATE.

CREATE SCHEMA snowflake_internal;
GRANT USAGE ON SCHEMA snowflake_internal TO PUBLIC;
COMMENT ON SCHEMA snowflake_internal IS
    'functions that the extension snowflake uses itself; they can change with every version';

-- The epoch of a call without epoch_ms: 2011-08-24 21:07:01.721 UTC in Unix milliseconds.
-- The only place of this number in SQL. In C++ it is kInstagramEpoch; sql/layout.sql compares the two.
CREATE FUNCTION snowflake_internal.default_epoch() RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    RETURN 1314220021721;

-- For the statements in hints: the extension's schema, unless that is public. A function with a search_path does not know its caller's.
CREATE FUNCTION snowflake_internal.prefix() RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
SELECT format('%I.', n.nspname) FROM pg_extension AS e JOIN pg_namespace AS n ON n.oid = e.extnamespace
WHERE e.extname = 'snowflake' AND n.nspname <> 'public'
$$;

-- A statement that is told to the reader of a hint. It can run code of the role that owns its object: with the rights of the reader, if the
-- reader runs it.
CREATE FUNCTION snowflake_internal.told_to(owner oid, statement text) RETURNS text
    LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
SELECT CASE WHEN pg_get_userbyid(owner) <> current_user THEN format('as role %I, because code of that role can run: ', pg_get_userbyid(owner))
       ELSE '' END || statement
$$;

-- Public functions for the bodies in text. The owner of the extension's schema can rename it, so no body may name it.

CREATE FUNCTION snowflake_internal.encode(created_at timestamptz, shard integer, seq integer, epoch_ms bigint) RETURNS bigint
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'snowflake_encode';

CREATE FUNCTION snowflake_internal.min_id(ts timestamptz, epoch_ms bigint) RETURNS bigint
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'snowflake_min_id';

CREATE FUNCTION snowflake_internal.time_of(id bigint, epoch_ms bigint) RETURNS timestamptz
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'snowflake_timestamp';

CREATE FUNCTION snowflake_internal.advance(seq regclass, past_id bigint, epoch_ms bigint) RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_advance';
