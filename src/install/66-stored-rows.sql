-- The rows of a table as they are stored: no code of its owner runs.

-- The columns that the call names, with their types.
CREATE FUNCTION snowflake_internal.stored_rows(tbl regclass) RETURNS SETOF record
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_stored_rows';

-- Number of the rows and the sum of their hashes, for the comparison of two servers; null where hashes do not do.
CREATE FUNCTION snowflake_internal.digest(tbl regclass, OUT rows bigint, OUT digest bigint)
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_digest';
