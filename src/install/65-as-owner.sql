-- Text that snowflake-shard carries into a shard, with the rights of the shard's owner.

-- Runs statements with the rights of the schema's owner, in a security-restricted operation, with the schema as
-- search_path; with those of the caller where owner.h says so.
CREATE FUNCTION snowflake_internal.run_as_owner(schema regnamespace, statements text) RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_run_as_owner';

-- The columns of a query in order, as rows_as_owner() would run it; a domain has its base type.
CREATE FUNCTION snowflake_internal.columns_as_owner(schema regnamespace, query text, OUT name text, OUT type oid)
    RETURNS SETOF record LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_columns_as_owner';

-- The rows of a query that runs as the statements of run_as_owner() do; all values as text.
CREATE FUNCTION snowflake_internal.rows_as_owner(schema regnamespace, query text) RETURNS SETOF record
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_rows_as_owner';

-- The same for a query with $1 and $2.
CREATE FUNCTION snowflake_internal.columns_as_owner(schema regnamespace, query text, first bigint, second bigint,
                                                    OUT name text, OUT type oid)
    RETURNS SETOF record LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_columns_as_owner';

CREATE FUNCTION snowflake_internal.rows_as_owner(schema regnamespace, query text, first bigint, second bigint)
    RETURNS SETOF record LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_rows_as_owner';

-- The same with the rights of a table's owner, who sees all of its rows, and with an empty search_path.
CREATE FUNCTION snowflake_internal.rows_as_table_owner(tbl regclass, query text) RETURNS SETOF record
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_rows_as_table_owner';

-- Number of a table's rows and the sum of their hashes, for the comparison of two servers, read as
-- rows_as_table_owner() reads them; null where hashes do not do.
CREATE FUNCTION snowflake_internal.digest(tbl regclass, OUT rows bigint, OUT digest bigint)
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_digest';

-- Whether it is one statement that PostgreSQL runs with the rights of the table's owner, and not of its caller.
-- For statements that no function can run, because they commit by themselves.
CREATE FUNCTION snowflake_internal.is_maintenance(statement text) RETURNS boolean
    LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'snowflake_is_maintenance';

-- Whether a script is more than comments; whether a statement of it begins or ends a transaction.
CREATE FUNCTION snowflake_internal.has_statements(statements text) RETURNS boolean
    LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'snowflake_has_statements';
CREATE FUNCTION snowflake_internal.ends_transaction(statements text) RETURNS boolean
    LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'snowflake_ends_transaction';

-- Whether run_as_owner() works with the caller's rights there; the errors of that function.
CREATE FUNCTION snowflake_internal.is_callers(schema regnamespace) RETURNS boolean
    LANGUAGE c STABLE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_is_callers';

-- The search_path for a statement that runs by itself in a schema, if no other code than the caller's can run in it.
CREATE FUNCTION snowflake_internal.path_of_statement(schema regnamespace, statement text) RETURNS text
    LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    may_all CONSTANT boolean := snowflake_internal.is_callers(schema); -- it locks the schema
    schema_row record;
BEGIN
    SELECT nspname, CASE nspowner WHEN 'pg_database_owner'::regrole THEN datdba ELSE nspowner END AS owner INTO schema_row
    FROM pg_namespace AS n JOIN pg_database AS d ON datname = current_database() WHERE n.oid = schema;
    IF NOT may_all AND NOT snowflake_internal.is_maintenance(statement) THEN
        RAISE insufficient_privilege USING
            MESSAGE = format('schema %I belongs to role %I, whose code could run with the rights of role %I in this statement',
                             schema_row.nspname, pg_get_userbyid(schema_row.owner), current_user),
            HINT = format('Connect as role %I. Without that, VACUUM, ANALYZE, REINDEX, DROP INDEX CONCURRENTLY are possible, '
                          'and CREATE INDEX CONCURRENTLY with each text constant as ''x''::text: PostgreSQL runs these as the '
                          'owner of the table.', pg_get_userbyid(schema_row.owner));
    END IF;
    RETURN quote_ident(schema_row.nspname);
END;
$$;

-- Runs statements as the caller; an expression of theirs that calls a function of another role is an error, 2F003.
-- For the dump of a shard, which makes it a second time.
CREATE FUNCTION snowflake_internal.run_guarded(statements text) RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_run_guarded';

-- As run_guarded(); CREATE OR REPLACE FUNCTION replaces these functions, and makes no other; each must belong to its owner.
CREATE FUNCTION snowflake_internal.replace_guarded(statements text, functions oid[], owners oid[]) RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_replace_guarded';

-- As run_as_owner(), with the rights of a role that the caller may act as, and with an empty search_path.
CREATE FUNCTION snowflake_internal.run_as_role(role name, statements text) RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_run_as_role';
