-- Whether a script is more than comments; whether a statement of it begins or ends a transaction.
CREATE FUNCTION snowflake_internal.has_statements(statements text) RETURNS boolean
    LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'snowflake_has_statements';
CREATE FUNCTION snowflake_internal.ends_transaction(statements text) RETURNS boolean
    LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'snowflake_ends_transaction';
