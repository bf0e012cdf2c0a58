\echo Use "ALTER EXTENSION snowflake UPDATE TO '1.2'" to load this file. \quit
-- From 1.1.1 to 1.2. The parts are those of the install script.

-- SQL of shards runs in a session of the owner.
DROP FUNCTION snowflake_internal.run_as_owner(regnamespace, text);
DROP FUNCTION snowflake_internal.rows_as_owner(regnamespace, text);
DROP FUNCTION snowflake_internal.rows_as_owner(regnamespace, text, bigint, bigint);
DROP FUNCTION snowflake_internal.columns_as_owner(regnamespace, text);
DROP FUNCTION snowflake_internal.columns_as_owner(regnamespace, text, bigint, bigint);
DROP FUNCTION snowflake_internal.path_of_statement(regnamespace, text);
DROP FUNCTION snowflake_internal.is_maintenance(text);
DROP FUNCTION snowflake_internal.foreign_code(oid, boolean);

-- Why SQL must not run in a superuser's schema, where it has the rights of a superuser, and the statement that ends that; NULL if it may, and
-- for other schemas. Another role could run code there if it owns an object in the schema, one on a relation of it (a trigger, a rule, a child
-- table), or one that any of these uses; or if it may make such an object.
CREATE FUNCTION snowflake_internal.foreign_code(schema oid, OUT problem text, OUT hint text)
    -- PL/pgSQL keeps a generic plan: planning takes ten times the rest, and the command asks for each statement in each shard.
    LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
BEGIN
WITH RECURSIVE superusers AS (
    -- The owner of the database stands for pg_database_owner, its only member.
    SELECT r.oid FROM pg_roles AS r JOIN pg_database AS d ON d.datname = current_database()
    JOIN pg_roles AS a ON a.oid = CASE r.oid WHEN 'pg_database_owner'::regrole THEN d.datdba ELSE r.oid END
    WHERE a.rolsuper),
contents (classid, objid) AS (
    SELECT classid, objid FROM pg_depend WHERE refclassid = 'pg_namespace'::regclass AND refobjid = $1
    UNION -- parts of a relation, its children, and keys to it; not a view or a function that only reads it
    SELECT d.classid, d.objid FROM contents AS c JOIN pg_depend AS d ON (d.refclassid, d.refobjid) = (c.classid, c.objid)
    WHERE c.classid = 'pg_class'::regclass AND (d.deptype <> 'n' OR d.classid IN ('pg_class'::regclass, 'pg_constraint'::regclass))),
used (classid, objid) AS (
    TABLE contents
    UNION
    SELECT d.refclassid, d.refobjid FROM used AS u JOIN pg_depend AS d ON (d.classid, d.objid) = (u.classid, u.objid)
    WHERE d.refclassid <> 'pg_namespace'::regclass AND d.deptype <> 'e'),
others (role, does, revoked) AS (
    SELECT s.refobjid, 'owns ' || pg_describe_object(u.classid, u.objid, 0), NULL
    FROM used AS u
    JOIN pg_shdepend AS s ON (s.classid, s.objid) = (u.classid, u.objid) AND s.deptype = 'o'
        AND s.dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
    UNION ALL
    SELECT grantee, 'may create objects in it', format('CREATE ON SCHEMA %I', nspname)
    FROM pg_namespace AS n CROSS JOIN aclexplode(nspacl) WHERE n.oid = $1 AND privilege_type = 'CREATE'
    UNION ALL
    SELECT grantee, format('has %s on %s', privilege_type, pg_describe_object('pg_class'::regclass, t.oid, 0)),
           format('TRIGGER, REFERENCES ON ALL TABLES IN SCHEMA %s', t.relnamespace::regnamespace) -- of their columns, too
    FROM contents JOIN pg_class AS t ON classid = 'pg_class'::regclass AND t.oid = objid AND relkind <> 'S'
    CROSS JOIN LATERAL (SELECT relacl UNION ALL SELECT attacl FROM pg_attribute WHERE attrelid = t.oid) AS a (acl)
    CROSS JOIN aclexplode(acl) WHERE privilege_type IN ('TRIGGER', 'REFERENCES'))
SELECT format('schema %I belongs to superuser %I, and %s %s: code of that role would run with the rights of a superuser',
              nspname, pg_get_userbyid(s.role),
              CASE o.role WHEN 0 THEN 'every role' ELSE format('role %I', pg_get_userbyid(o.role)) END, o.does),
       coalesce('REVOKE ' || o.revoked || ' FROM '
                || CASE o.role WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(o.role)) END || '; Or: ', '')
       || format('ALTER SCHEMA %I OWNER TO ...; and the same of its objects gives the shard to a role that is no superuser.', nspname)
INTO problem, hint
FROM others AS o, pg_namespace AS n
CROSS JOIN LATERAL (SELECT CASE nspowner WHEN 'pg_database_owner'::regrole THEN datdba ELSE nspowner END
                    FROM pg_database WHERE datname = current_database()) AS s (role)
WHERE n.oid = $1 AND s.role IN (TABLE superusers) AND o.role NOT IN (TABLE superusers)
ORDER BY o.does LIMIT 1;
END;
$$;

-- SQL that snowflake-shard carries into a shard runs in a session of the shard's owner: a background worker that is authenticated as
-- that role, kept for the caller's session. Whether the caller may act as the owner, and no other right, is asked.

-- Why SQL cannot run in a session of the schema's owner, and the statement that mends it; NULL if it can.
CREATE FUNCTION snowflake_internal.session_problem(schema regnamespace, OUT problem text, OUT hint text)
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_session_problem';

-- A session of the schema's owner, new or as new; runs the commands in it, such as BEGIN, and makes the schema its search_path.
CREATE FUNCTION snowflake_internal.session_begin(schema regnamespace, beginning text) RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_session_begin';

-- The functions below work in the session that session_begin() has made. Commands of the caller, such as COMMIT.
CREATE FUNCTION snowflake_internal.session_run(commands text) RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_session_run';

-- Statements of others, in a transaction that they cannot end.
CREATE FUNCTION snowflake_internal.session_script(statements text) RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_session_script';

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

-- How snowflake-shard keeps the extension while it calls functions of snowflake_internal by their names.

-- Nobody can drop the extension of this function until the session or a transaction that fails has ended; on a standby, until the
-- transaction ends. relation: one of the extension. The command calls it by its OID, which can lead to no other function.
CREATE FUNCTION snowflake_internal.keep_extension(relation oid) RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_keep_extension';
