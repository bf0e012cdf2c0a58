-- The rows of a moved table, as snowflake-shard carries them.

CREATE FUNCTION snowflake_internal.copy_rows(tbl regclass, columns text[], format text, rows bytea) RETURNS bigint
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'snowflake_copy_rows';
REVOKE EXECUTE ON FUNCTION snowflake_internal.copy_rows(regclass, text[], text, bytea) FROM PUBLIC;
COMMENT ON FUNCTION snowflake_internal.copy_rows(regclass, text[], text, bytea) IS
    'inserts rows in a format of COPY, with the rights of the table''s owner; returns their number';

CREATE FUNCTION snowflake_internal.fire_key(key oid, always boolean) RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'snowflake_fire_key';
COMMENT ON FUNCTION snowflake_internal.fire_key(oid, boolean) IS
    'whether rows that replication writes are checked by a foreign key, too; for the owner of its table';
