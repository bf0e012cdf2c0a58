-- How snowflake-shard keeps the extension while it calls functions of snowflake_internal by their names.

-- Nobody can drop the extension of this function until the session or a transaction that fails has ended; on a standby, until the
-- transaction ends. relation: one of the extension. The command calls it by its OID, which can lead to no other function.
CREATE FUNCTION snowflake_internal.keep_extension(relation oid) RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_keep_extension';
