\echo Use "ALTER EXTENSION snowflake UPDATE TO '1.2'" to load this file. \quit
-- From 1.1.1 to 1.2. The parts are those of the install script.

-- SQL of shards runs in a session of the owner.
DROP FUNCTION snowflake_internal.run_as_owner(regnamespace, text);
DROP FUNCTION snowflake_internal.run_as_role(name, text);
DROP FUNCTION snowflake_internal.rows_as_owner(regnamespace, text);
DROP FUNCTION snowflake_internal.rows_as_owner(regnamespace, text, bigint, bigint);
DROP FUNCTION snowflake_internal.columns_as_owner(regnamespace, text);
DROP FUNCTION snowflake_internal.columns_as_owner(regnamespace, text, bigint, bigint);
DROP FUNCTION snowflake_internal.path_of_statement(regnamespace, text);
DROP FUNCTION snowflake_internal.is_maintenance(text);
DROP FUNCTION snowflake_internal.is_callers(regnamespace);
DROP FUNCTION snowflake_internal.foreign_code(oid, boolean);
DROP FUNCTION snowflake_internal.rows_as_table_owner(regclass, text);
DROP FUNCTION snowflake_internal.run_guarded(text);
DROP FUNCTION snowflake_internal.replace_guarded(text, oid[], oid[]);

-- Why SQL must not run in a superuser's schema, where it has the rights of a superuser, and the statement that ends that; NULL if it may, and
-- for other schemas. Another role could run code there if it owns an object in the schema, one on a relation of it (a trigger, a rule, a child
-- table), or one that any of these uses; or if it may make such an object. tbl: the same of a table alone, which is only read; schema is 0.
CREATE FUNCTION snowflake_internal.foreign_code(schema oid, tbl oid DEFAULT 0, OUT problem text, OUT hint text)
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
    (SELECT classid, objid FROM pg_depend WHERE refclassid = 'pg_namespace'::regclass AND refobjid = $1
     UNION ALL SELECT 'pg_class'::regclass, $2 WHERE $2 <> 0)
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
    FROM contents JOIN pg_class AS t ON classid = 'pg_class'::regclass AND t.oid = objid
    CROSS JOIN LATERAL (SELECT relacl UNION ALL SELECT attacl FROM pg_attribute WHERE attrelid = t.oid) AS a (acl)
    CROSS JOIN aclexplode(acl) WHERE privilege_type IN ('TRIGGER', 'REFERENCES') AND $2 = 0),
objects (kind, name, role) AS (
    SELECT 'SCHEMA', quote_ident(nspname), CASE nspowner WHEN 'pg_database_owner'::regrole THEN datdba ELSE nspowner END
    FROM pg_namespace AS n JOIN pg_database ON datname = current_database() WHERE n.oid = $1
    UNION ALL
    SELECT 'TABLE', oid::regclass::text, relowner FROM pg_class WHERE oid = $2)
SELECT format('%s %s belongs to superuser %I, and %s %s: code of that role would run with the rights of a superuser',
              lower(s.kind), s.name, pg_get_userbyid(s.role),
              CASE o.role WHEN 0 THEN 'every role' ELSE format('role %I', pg_get_userbyid(o.role)) END, o.does),
       coalesce('REVOKE ' || o.revoked || ' FROM '
                || CASE o.role WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(o.role)) END || '; Or: ', '')
       || format('ALTER %s %s OWNER TO ...; %s to a role that is no superuser.', s.kind, s.name,
                 CASE $2 WHEN 0 THEN 'and the same of its objects gives the shard' ELSE 'gives the table' END)
INTO problem, hint
FROM others AS o, objects AS s
WHERE s.role IN (TABLE superusers) AND o.role NOT IN (TABLE superusers)
ORDER BY o.does LIMIT 1;
END;
$$;

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

-- The schema stays until the transaction ends, and in some releases its name, too: for roles that may act as its owner, or create objects in it.
CREATE FUNCTION snowflake_internal.lock_schema(schema regnamespace) RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_lock_schema';

-- The rows of a table as they are stored: no code of its owner runs.

-- The columns that the call names, with their types.
CREATE FUNCTION snowflake_internal.stored_rows(tbl regclass) RETURNS SETOF record
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_stored_rows';

-- How snowflake-shard keeps the extension while it calls functions of snowflake_internal by their names.

-- Nobody can drop the extension of this function until the session or a transaction that fails has ended; on a standby, until the
-- transaction ends. relation: one of the extension. The command calls it by its OID, which can lead to no other function.
CREATE FUNCTION snowflake_internal.keep_extension(relation oid) RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_keep_extension';

-- A statement that is told to the reader of a hint. It can run code of the role that owns its object: with the rights of the reader, if the
-- reader runs it.
CREATE FUNCTION snowflake_internal.told_to(owner oid, statement text) RETURNS text
    LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
SELECT CASE WHEN pg_get_userbyid(owner) <> current_user THEN format('as role %I, because code of that role can run: ', pg_get_userbyid(owner))
       ELSE '' END || statement
$$;

CREATE OR REPLACE FUNCTION snowflake_internal.check_functions(calls snowflake_internal.call[]) RETURNS SETOF snowflake_internal.finding
    LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
WITH foreigners AS MATERIALIZED (
    SELECT p.oid, p.proowner, p.proname = 'next_id' AND l.lanname = 'plpgsql' AS is_of_scheme
    FROM pg_proc AS p JOIN pg_language AS l ON l.oid = p.prolang
    WHERE p.pronargs = 0 AND p.prorettype = 'bigint'::regtype AND p.prokind = 'f' AND NOT p.proretset AND p.provolatile = 'v'
      AND NOT EXISTS (SELECT FROM snowflake_internal.rows_of($1) AS k WHERE k.classid = 'pg_proc'::regclass AND k.objid = p.oid)
      AND NOT EXISTS (SELECT FROM pg_depend AS e WHERE e.classid = 'pg_proc'::regclass AND e.objid = p.oid AND e.deptype = 'e')
), called AS (
    SELECT p.oid AS function, min(f.oid) AS by_default
    FROM foreigners AS p
    JOIN pg_depend AS u ON u.refclassid = 'pg_proc'::regclass AND u.refobjid = p.oid AND u.classid = 'pg_attrdef'::regclass
    JOIN pg_attrdef AS f ON f.oid = u.objid
    JOIN pg_attribute AS a ON a.attrelid = f.adrelid AND a.attnum = f.adnum
    JOIN pg_type AS t ON t.oid = a.atttypid AND t.typoutput = 'int8out'::regproc -- bigint, or a domain over it
    GROUP BY p.oid
)
SELECT 'notice', p.oid::regprocedure::text,
       coalesce('the DEFAULT of ' || (pg_identify_object('pg_class'::regclass, f.adrelid, f.adnum)).identity
                || ' calls it, and it is not native', 'it is a PL/pgSQL function, with the duplicates of that scheme'),
       snowflake_internal.told_to(p.proowner, format('SELECT %ssnowflake_adopt(%L, shard => ...);', snowflake_internal.prefix(),
                                                     p.oid::regprocedure))
FROM foreigners AS p
LEFT JOIN called AS c ON c.function = p.oid
LEFT JOIN pg_attrdef AS f ON f.oid = c.by_default
WHERE c.function IS NOT NULL OR p.is_of_scheme
$$;

CREATE OR REPLACE FUNCTION snowflake_create_shard(shard integer, schema_name name,
                                       epoch_ms bigint DEFAULT snowflake_internal.default_epoch())
    RETURNS void LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    present record;
    found_sequence record;
    sequence regclass;
BEGIN
    PERFORM snowflake_internal.require_read_committed(
        'snowflake_create_shard'::text, format('%s, %L, %s', shard, schema_name, epoch_ms));
    PERFORM snowflake_internal.claim_shard(shard, schema_name);
    -- An epoch in seconds, for example, would be an error of each INSERT. This makes it an error of the caller.
    PERFORM snowflake_internal.encode(clock_timestamp(), 0, 0, epoch_ms);

    IF to_regnamespace(quote_ident(schema_name)) IS NULL THEN
        EXECUTE format('CREATE SCHEMA %I', schema_name);
    ELSIF NOT has_schema_privilege(schema_name, 'CREATE') THEN
        RAISE EXCEPTION 'permission denied for schema %', quote_ident(schema_name) USING
            ERRCODE = 'insufficient_privilege',
            HINT = format('GRANT CREATE ON SCHEMA %I TO %I;', schema_name, current_user);
    END IF;

    -- An existing function is kept if it is the wanted one, and never replaced: DEFAULTs may call it.
    SELECT p.oid::regprocedure AS function, p.proowner, c.shard, c.seq, c.epoch_ms, c.is_plain INTO present
    FROM pg_proc AS p
    LEFT JOIN LATERAL snowflake_internal.call_of('pg_proc'::regclass::oid, p.oid, 0) AS c ON true
    WHERE p.proname = 'next_id' AND p.pronargs = 0 AND p.pronamespace = to_regnamespace(quote_ident(schema_name));
    IF FOUND THEN
        IF present.shard = shard AND present.epoch_ms = epoch_ms AND present.is_plain THEN
            RAISE NOTICE 'schema % is shard % already', quote_ident(schema_name), shard;
            -- Shards of version 1.0 have none.
            PERFORM snowflake_internal.make_settled_id(shard, schema_name, present.seq, epoch_ms);
            RETURN;
        END IF;
        RAISE EXCEPTION 'function % exists already', present.function USING ERRCODE = 'duplicate_function',
            DETAIL = CASE WHEN present.shard IS NULL THEN 'It does not call snowflake_next_id().'
                          ELSE format('It makes IDs of shard %s with epoch_ms %s.', present.shard, present.epoch_ms) END,
            HINT = CASE WHEN present.shard IS NULL
                        THEN 'If it is a PL/pgSQL function of this scheme: ' || snowflake_internal.told_to(present.proowner,
                             format('SELECT %ssnowflake_adopt(%L, %s).', snowflake_internal.prefix(), present.function, shard))
                        ELSE 'Choose another schema.' END;
    END IF;

    -- Reuse an existing sequence unless another role owns it: that role could restart it, and IDs would come twice.
    SELECT c.oid::regclass AS name, c.relowner::regrole AS owner, n.nspowner INTO found_sequence
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE c.relname = 'table_id_seq' AND c.relkind = 'S' AND n.nspname = schema_name;
    IF found_sequence.owner NOT IN (found_sequence.nspowner, quote_ident(current_user)::regrole) THEN
        RAISE EXCEPTION 'sequence % belongs to %', found_sequence.name, found_sequence.owner USING
            ERRCODE = 'insufficient_privilege',
            DETAIL = 'Its owner could drop it and make it anew, and IDs would come twice.',
            HINT = format('ALTER SEQUENCE %s OWNER TO %I;', found_sequence.name, current_user);
    END IF;
    EXECUTE format('CREATE SEQUENCE IF NOT EXISTS %I.table_id_seq AS bigint', schema_name);
    sequence := format('%I.table_id_seq', schema_name)::regclass;
    PERFORM snowflake_internal.require_sequence(sequence);
    EXECUTE format('CREATE FUNCTION %I.next_id() RETURNS bigint LANGUAGE sql VOLATILE PARALLEL UNSAFE RETURN %s',
                   schema_name, snowflake_internal.call_text(shard, sequence, epoch_ms));
    EXECUTE format('COMMENT ON FUNCTION %I.next_id() IS %L', schema_name, format('next ID of shard %s', shard));
    PERFORM snowflake_internal.make_settled_id(shard, schema_name, sequence, epoch_ms);
END;
$$;

CREATE OR REPLACE FUNCTION snowflake_internal.attach_require_known_epoch(
        scope snowflake_internal.attach_member[], shard integer, epoch_ms bigint, arguments text) RETURNS void
    LANGUAGE plpgsql STABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    old record;
BEGIN
    SELECT s.tbl, s.column_name, p.oid::regprocedure AS function,
           p.pronargs = 0 AND p.prorettype = 'bigint'::regtype AND NOT p.proretset AS is_adoptable
    INTO old
    FROM snowflake_internal.attach_old_defaults(scope) AS s
    -- The functions of PostgreSQL itself are not in pg_depend.
    JOIN pg_depend AS d ON d.classid = s.classid AND d.objid = s.objid AND d.refclassid = 'pg_proc'::regclass
    JOIN pg_proc AS p ON p.oid = d.refobjid
    WHERE NOT EXISTS (SELECT FROM snowflake_internal.call_of('pg_class'::regclass::oid, s.tbl::oid, s.attnum::integer))
    ORDER BY s.tbl <> scope[1].tbl, s.tbl::text COLLATE "C", p.pronargs, p.oid
    LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'the epoch of the IDs in column % of table % is not known',
            quote_ident(old.column_name), old.tbl USING
            ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = format('Its DEFAULT calls function %s, whose IDs may count from another epoch than %s. '
                            'IDs of two epochs in one column are not in order.',
                            old.function, epoch_ms),
            HINT = concat_ws(' ',
                CASE WHEN old.is_adoptable THEN
                    snowflake_internal.told_to((SELECT proowner FROM pg_proc WHERE oid = old.function),
                        format('SELECT %ssnowflake_adopt(%L, shard => %s) finds the epoch out, and makes the function native for '
                               'all columns that use it.', snowflake_internal.prefix(), old.function, shard)) END,
                format('To attach only this column, name the epoch of its IDs: '
                       'SELECT %ssnowflake_attach(%s, epoch_ms => ...);', snowflake_internal.prefix(), arguments));
    END IF;
END;
$$;
