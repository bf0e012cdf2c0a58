-- The rows of a moved table, as snowflake-shard carries them.

-- Inserts rows in a format of COPY, in a session of the table's owner; returns their number. In a transaction block of the caller the session has
-- one for all calls, which ends by session_run('COMMIT').
CREATE FUNCTION snowflake_internal.copy_rows(tbl regclass, columns text[], format text, rows bytea) RETURNS bigint
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_copy_rows';
REVOKE EXECUTE ON FUNCTION snowflake_internal.copy_rows(regclass, text[], text, bytea) FROM PUBLIC;

-- Whether rows that replication writes are checked by a foreign key, too; for the owner of its table.
CREATE FUNCTION snowflake_internal.fire_key(key oid, always boolean) RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_fire_key';
