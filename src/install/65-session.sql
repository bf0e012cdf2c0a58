-- SQL that snowflake-shard carries into a shard runs in a session of the shard's owner: a background worker that is authenticated as
-- that role, kept for the caller's session. Whether the caller may act as the owner, and no other right, is asked.

-- Why SQL cannot run in a session of the schema's owner, or of a role on that role's tables, and the statement that mends it; NULL if it can.
CREATE FUNCTION snowflake_internal.session_problem(schema regnamespace, OUT problem text, OUT hint text)
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_session_problem';
CREATE FUNCTION snowflake_internal.session_problem_of(role oid, OUT problem text, OUT hint text)
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_session_problem_of';

-- A session of the schema's owner, new or as new; runs the commands in it, such as BEGIN, and makes the schema its search_path.
CREATE FUNCTION snowflake_internal.session_begin(schema regnamespace, beginning text) RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_session_begin';

-- As session_begin(), of a role, with pg_catalog alone as search_path: for definitions.
CREATE FUNCTION snowflake_internal.session_of_role(role name, beginning text) RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_session_of_role';

-- The functions below work in the session that one of these has made. Commands of the caller, such as COMMIT.
CREATE FUNCTION snowflake_internal.session_run(commands text) RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_session_run';

-- Statements of others, in a transaction that they cannot end.
CREATE FUNCTION snowflake_internal.session_script(statements text) RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_session_script';

-- A schema of the session's role, made and renamed in the session's transaction with the rights of the caller: the role may lack CREATE on
-- the database. Event triggers run with the rights of the role.
CREATE FUNCTION snowflake_internal.session_create_schema(name name) RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_session_create_schema';
CREATE FUNCTION snowflake_internal.session_rename_schema(name name, new_name name) RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_session_rename_schema';

-- A comment on a publication or subscription of the caller, in the session's transaction.
CREATE FUNCTION snowflake_internal.session_comment(catalog regclass, name name, comment text) RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_session_comment';

-- One statement of others, in no transaction.
CREATE PROCEDURE snowflake_internal.session_alone(statement text)
    LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_session_alone';

-- Opens a query, and tells its columns; a domain has its base type. The second form: for a query with $1 and $2.
CREATE FUNCTION snowflake_internal.session_query(query text, OUT name text, OUT type oid) RETURNS SETOF record
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_session_query';
CREATE FUNCTION snowflake_internal.session_query(query text, first bigint, second bigint, OUT name text, OUT type oid)
    RETURNS SETOF record LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_session_query';

-- The next rows of that query, at most so many; all values as text.
CREATE FUNCTION snowflake_internal.session_fetch(most integer) RETURNS SETOF record
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_session_fetch';

-- The rows of a query that reads this table and no relation of another role, in a session of the table's owner; all values as text. Values are
-- written as the settings of the caller say, and in the caller's snapshot if it works with one.
CREATE FUNCTION snowflake_internal.session_rows(tbl regclass, query text) RETURNS SETOF record
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_session_rows';
