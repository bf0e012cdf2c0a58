-- Steps of snowflake_attach(): making the sequence, and which roles may draw from it.

-- The free name that PostgreSQL would give the sequence of a serial column.
CREATE FUNCTION snowflake_internal.attach_sequence_name(schema regnamespace, table_name name, column_name name)
    RETURNS name LANGUAGE c STABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'snowflake_attach_sequence_name';

-- Makes the sequence if there is none, gives it the shape for positions, and sees to the privileges of the roles that may INSERT.
CREATE FUNCTION snowflake_internal.attach_prepare_sequence(
        scope snowflake_internal.attach_member[], seq regclass, is_given boolean) RETURNS regclass
    LANGUAGE plpgsql VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    col CONSTANT snowflake_internal.attach_member := scope[1];
    is_new CONSTANT boolean := seq IS NULL;
    identity record;
    roles text;
BEGIN
    -- Before a new sequence is made, so that the name of the identity's is free again.
    SELECT c.relacl, a.attidentity INTO identity
    FROM pg_depend AS d JOIN pg_class AS c ON c.oid = d.objid AND c.relkind = 'S'
    JOIN pg_attribute AS a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
    WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = col.tbl AND d.refobjsubid = col.attnum
      AND d.classid = 'pg_class'::regclass AND d.deptype = 'i';
    IF FOUND THEN
        EXECUTE format('ALTER TABLE %s ALTER COLUMN %I DROP IDENTITY', col.tbl, col.column_name);
        IF identity.attidentity = 'a' THEN
            RAISE NOTICE 'column % of table % was GENERATED ALWAYS, and takes the value of an INSERT or UPDATE from now on',
                quote_ident(col.column_name), col.tbl;
        END IF;
    END IF;
    IF is_new THEN
        seq := snowflake_internal.attach_new_sequence(col.tbl, col.column_name, identity.relacl);
    ELSIF NOT is_given THEN
        EXECUTE format('ALTER SEQUENCE %s AS bigint INCREMENT BY 1 NO MAXVALUE', seq);
    END IF;

    -- A role that may INSERT needs no privilege on an identity's sequence. So it gets one on a new sequence. The
    -- privileges of a sequence that was there stay as they are.
    roles := snowflake_internal.attach_inserters(scope, seq);
    IF roles IS NOT NULL AND is_new THEN
        EXECUTE format('GRANT USAGE ON SEQUENCE %s TO %s', seq, roles);
        RAISE NOTICE 'USAGE on sequence % is granted to % who may INSERT into %', seq, roles, col.tbl;
    ELSIF roles IS NOT NULL THEN
        RAISE NOTICE 'sequence % may not be used by % who may INSERT into %', seq, roles, col.tbl USING
            HINT = format('GRANT USAGE ON SEQUENCE %s TO %s;', seq, roles);
    END IF;
    RETURN seq;
END;
$$;

-- Makes the sequence of a column, with the privileges of the one before it.
CREATE FUNCTION snowflake_internal.attach_new_sequence(tbl regclass, column_name name, acl aclitem[] DEFAULT NULL)
    RETURNS regclass
    LANGUAGE plpgsql VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    rel pg_class;
    qualified text;
    seq regclass;
    statement text;
BEGIN
    SELECT * INTO STRICT rel FROM pg_class AS c WHERE c.oid = tbl;

    -- The owner of the sequence is that of the table. A crash resets it only if the table is reset, too.
    qualified := format('%s.%I', rel.relnamespace::regnamespace, snowflake_internal.attach_sequence_name(
        rel.relnamespace::regnamespace, rel.relname, column_name));
    EXECUTE format('CREATE %s SEQUENCE %s AS bigint',
                   CASE rel.relpersistence WHEN 'u' THEN 'UNLOGGED' END, -- a temporary one is by its schema
                   qualified);
    seq := qualified::regclass;
    EXECUTE format('ALTER SEQUENCE %s OWNER TO %s', seq, rel.relowner::regrole);
    EXECUTE format('ALTER SEQUENCE %s OWNED BY %s.%I', seq, tbl, column_name);
    -- All in the name of the owner: another grantor may have no right on the new sequence.
    FOR statement IN
        SELECT format('GRANT %s ON SEQUENCE %s TO %s%s', g.privilege_type, seq,
                      CASE WHEN g.grantee = 0 THEN 'PUBLIC' ELSE g.grantee::regrole::text END,
                      CASE WHEN g.is_grantable THEN ' WITH GRANT OPTION' END)
        FROM aclexplode(acl) AS g WHERE g.grantee <> rel.relowner
    LOOP
        EXECUTE statement;
    END LOOP;
    RETURN seq;
END;
$$;

-- The roles that may INSERT into a table but not draw from its sequence; NULL: none.
CREATE FUNCTION snowflake_internal.attach_inserters(scope snowflake_internal.attach_member[], seq regclass) RETURNS text
    LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
-- Into the table, its partitions or children, or a view on any of them, all columns or some. The DEFAULT is
-- computed with the rights of the role that inserts, never of a view's owner.
WITH RECURSIVE insertable AS (
    SELECT s.tbl::oid AS relid FROM unnest($1) AS s WHERE s.is_attached
    UNION
    SELECT v.oid
    FROM insertable AS t
    JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = t.relid
        AND d.classid = 'pg_rewrite'::regclass
    JOIN pg_rewrite AS w ON w.oid = d.objid
    -- Any role can make a view of a table. An INSERT into it needs the right of the view's owner on the table.
    JOIN pg_class AS v ON v.oid = w.ev_class AND v.relkind = 'v'
        AND has_any_column_privilege(v.relowner, t.relid, 'INSERT')
), acls AS (
    SELECT c.relowner, c.relacl AS acl FROM insertable AS t JOIN pg_class AS c ON c.oid = t.relid
    UNION ALL
    SELECT 0, a.attacl FROM insertable AS t JOIN pg_attribute AS a ON a.attrelid = t.relid
), grantees AS (
    SELECT g.grantee FROM acls CROSS JOIN LATERAL aclexplode(acls.acl) AS g WHERE g.privilege_type = 'INSERT'
    UNION
    SELECT acls.relowner FROM acls WHERE acls.relowner <> 0
)
SELECT string_agg(CASE WHEN g.grantee = 0 THEN 'PUBLIC' ELSE g.grantee::regrole::text END, ', '
                  ORDER BY g.grantee::regrole::text COLLATE "C")
FROM grantees AS g
-- Either privilege is enough to draw. A role can have it by membership.
WHERE NOT CASE WHEN g.grantee = 0 THEN has_sequence_privilege('public', $2, 'USAGE, UPDATE')
               ELSE has_sequence_privilege(g.grantee, $2, 'USAGE, UPDATE') END
$$;
