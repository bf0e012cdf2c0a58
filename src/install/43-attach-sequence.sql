-- Steps of snowflake_attach(): the column's sequence, and who may draw from it.

CREATE FUNCTION snowflake_internal.attach_sequence_name(schema regnamespace, table_name name, column_name name) RETURNS name
    LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
-- As makeObjectName() and ChooseRelationName() do it in PostgreSQL's indexcmds.c, so that a column
-- attached and a serial column look alike, and a tool that guesses the name guesses right.
DECLARE
    table_part text := table_name;
    column_part text := column_name;
    table_bytes integer := octet_length(table_name::text);
    column_bytes integer := octet_length(column_name::text);
    label text := 'seq';
    pass integer := 0;
    chosen name;
BEGIN
    LOOP
        -- The longer of the two gives way, byte by byte; characters are cut off whole.
        WHILE table_bytes + column_bytes > current_setting('max_identifier_length')::integer - octet_length(label) - 2 LOOP
            IF table_bytes > column_bytes THEN
                table_bytes := table_bytes - 1;
            ELSE
                column_bytes := column_bytes - 1;
            END IF;
        END LOOP;
        WHILE octet_length(table_part) > table_bytes LOOP
            table_part := left(table_part, -1);
        END LOOP;
        WHILE octet_length(column_part) > column_bytes LOOP
            column_part := left(column_part, -1);
        END LOOP;
        chosen := concat_ws('_', table_part, column_part, label);
        IF NOT EXISTS (SELECT FROM pg_class AS c WHERE c.relname = chosen AND c.relnamespace = schema) THEN
            RETURN chosen;
        END IF;
        pass := pass + 1;
        label := 'seq' || pass;
    END LOOP;
END;
$$;
COMMENT ON FUNCTION snowflake_internal.attach_sequence_name(regnamespace, name, name) IS
    'the free name that PostgreSQL would give the sequence of a serial column: table_column_seq, cut to length, with a number if taken';

-- The sequence of a serial column is kept: its privileges, its name in scripts, its owner. Not if it
-- serves others, by a DEFAULT, a view or a function: what they draw would jump to 2^50 and beyond, and
-- an integer column would take no row any more. A PL/pgSQL body does not show here what it draws from.
CREATE FUNCTION snowflake_internal.attach_old_sequence(tbl regclass, attnum smallint, OUT seq regclass, OUT sharers text)
    LANGUAGE sql STABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
WITH own_defaults AS (
    SELECT f.oid, s.member = $1 AND s.member_attnum = $2 AS is_first
    FROM snowflake_internal.attach_scope($1, $2) AS s
    JOIN pg_attrdef AS f ON f.adrelid = s.member AND f.adnum = s.member_attnum
    WHERE s.is_attached
)
SELECT o.objid,
       (SELECT string_agg(pg_describe_object(u.classid, u.objid, u.objsubid), ', ' ORDER BY u.classid, u.objid)
        FROM pg_depend AS u
        WHERE u.refclassid = 'pg_class'::regclass AND u.refobjid = o.objid AND u.deptype = 'n'
          AND NOT (u.classid = 'pg_attrdef'::regclass AND u.objid IN (SELECT d.oid FROM own_defaults AS d)))
FROM pg_depend AS o
JOIN pg_class AS c ON c.oid = o.objid AND c.relkind = 'S'
WHERE o.refclassid = 'pg_class'::regclass AND o.refobjid = $1 AND o.refobjsubid = $2
  AND o.classid = 'pg_class'::regclass AND o.deptype = 'a'
-- Should the column own several: the one that its DEFAULT draws from.
ORDER BY EXISTS (SELECT FROM pg_depend AS u JOIN own_defaults AS d ON d.oid = u.objid AND d.is_first
                 WHERE u.classid = 'pg_attrdef'::regclass AND u.refclassid = 'pg_class'::regclass AND u.refobjid = o.objid) DESC,
         o.objid
LIMIT 1
$$;
COMMENT ON FUNCTION snowflake_internal.attach_old_sequence(regclass, smallint) IS
    'the sequence that a column owns, as a serial column does, and what else draws from it';

CREATE FUNCTION snowflake_internal.attach_new_sequence(tbl regclass, column_name name) RETURNS regclass
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    rel pg_class;
    identity_acl aclitem[];
    sequence regclass;
    sequence_name name;
    granted record;
BEGIN
    SELECT * INTO STRICT rel FROM pg_class AS c WHERE c.oid = tbl;

    -- An identity's sequence cannot outlive it; it goes first, so that its name is free again.
    SELECT c.relacl INTO identity_acl
    FROM pg_attribute AS a
    JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = tbl AND d.refobjsubid = a.attnum
                       AND d.classid = 'pg_class'::regclass AND d.deptype = 'i'
    JOIN pg_class AS c ON c.oid = d.objid AND c.relkind = 'S'
    WHERE a.attrelid = tbl AND a.attname = column_name;
    IF FOUND THEN
        EXECUTE format('ALTER TABLE %s ALTER COLUMN %I DROP IDENTITY', tbl, column_name);
    END IF;

    -- A sequence has the owner of the table that owns it, and is lost in a crash only where that is.
    sequence_name := snowflake_internal.attach_sequence_name(rel.relnamespace::regnamespace, rel.relname, column_name);
    EXECUTE format('CREATE %s SEQUENCE %s.%I AS bigint',
                   CASE rel.relpersistence WHEN 'u' THEN 'UNLOGGED' END, -- a temporary one is by its schema
                   rel.relnamespace::regnamespace, sequence_name);
    sequence := format('%s.%I', rel.relnamespace::regnamespace, sequence_name)::regclass;
    IF rel.relowner <> quote_ident(current_user)::regrole THEN
        EXECUTE format('ALTER SEQUENCE %s OWNER TO %s', sequence, rel.relowner::regrole);
    END IF;
    EXECUTE format('ALTER SEQUENCE %s OWNED BY %s.%I', sequence, tbl, column_name);

    -- Who granted it is lost, as the owner grants it now. The owner's own rights are a new owner's.
    FOR granted IN
        SELECT g.privilege_type, g.is_grantable, CASE WHEN g.grantee = 0 THEN 'PUBLIC' ELSE g.grantee::regrole::text END AS grantee
        FROM aclexplode(identity_acl) AS g WHERE g.grantee <> rel.relowner
    LOOP
        EXECUTE format('GRANT %s ON SEQUENCE %s TO %s%s', granted.privilege_type, sequence, granted.grantee,
                       CASE WHEN granted.is_grantable THEN ' WITH GRANT OPTION' END);
    END LOOP;
    RETURN sequence;
END;
$$;
COMMENT ON FUNCTION snowflake_internal.attach_new_sequence(regclass, name) IS
    'makes the sequence of a column that has none, or an identity, whose privileges it takes over';

CREATE FUNCTION snowflake_internal.attach_inserters(tbl regclass, attnum smallint, seq regclass) RETURNS text
    LANGUAGE sql STABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
-- Into the table, its partitions or children, or a view on any of them, all columns or some: the
-- DEFAULT is computed with the rights of whoever inserts, of a view's owner never.
WITH RECURSIVE targets AS (
    SELECT s.member::oid AS relid FROM snowflake_internal.attach_scope($1, $2) AS s WHERE s.is_attached
    UNION
    SELECT v.oid
    FROM targets AS t
    JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = t.relid AND d.classid = 'pg_rewrite'::regclass
    JOIN pg_rewrite AS w ON w.oid = d.objid
    -- Anybody can make a view of a table; INSERTs get through that of an owner who may do them himself.
    JOIN pg_class AS v ON v.oid = w.ev_class AND v.relkind = 'v' AND has_any_column_privilege(v.relowner, t.relid, 'INSERT')
), acls AS (
    SELECT c.relowner, c.relacl AS acl FROM targets AS t JOIN pg_class AS c ON c.oid = t.relid
    UNION ALL
    SELECT 0, a.attacl FROM targets AS t JOIN pg_attribute AS a ON a.attrelid = t.relid
), grantees AS (
    SELECT g.grantee FROM acls CROSS JOIN LATERAL aclexplode(acls.acl) AS g WHERE g.privilege_type = 'INSERT'
    UNION
    SELECT acls.relowner FROM acls WHERE acls.relowner <> 0
)
SELECT string_agg(CASE WHEN g.grantee = 0 THEN 'PUBLIC' ELSE g.grantee::regrole::text END, ', ' ORDER BY g.grantee::regrole::text COLLATE "C")
FROM grantees AS g
-- Either of the two lets a role draw; a role may have it by membership.
WHERE NOT CASE WHEN g.grantee = 0 THEN has_sequence_privilege('public', $3, 'USAGE, UPDATE')
               ELSE has_sequence_privilege(g.grantee, $3, 'USAGE, UPDATE') END
$$;
COMMENT ON FUNCTION snowflake_internal.attach_inserters(regclass, smallint, regclass) IS
    'the roles that may INSERT into a table but not draw from its sequence; NULL: none';
