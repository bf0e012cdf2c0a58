-- Steps of snowflake_attach(): which columns change, in whose tables, and under which locks.

-- The column itself first, then those of children and partitions, and those that refer to it by foreign keys.
CREATE FUNCTION snowflake_internal.attach_scope(tbl regclass, attnum smallint)
    RETURNS snowflake_internal.attach_member[]
    LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
-- From the column up and down its table's inheritance tree, and along foreign keys to the columns that
-- refer to it, until nothing is added. A column that refers to an ID must be able to hold one, and so must
-- one that refers to that column. A wide column may lie between two narrow ones. The column that it refers to
-- itself is not reached: a bigint may refer to an integer.
WITH RECURSIVE reached AS (
    SELECT a.attrelid, a.attnum, a.attname FROM pg_attribute AS a WHERE a.attrelid = $1 AND a.attnum = $2
    UNION
    SELECT a.attrelid, a.attnum, a.attname
    FROM reached AS r
    CROSS JOIN LATERAL (
        -- Through pg_depend: pg_constraint has no index on confrelid.
        SELECT c.conrelid AS relid, k.referring AS attnum, NULL::name AS attname
        FROM pg_depend AS d
        JOIN pg_constraint AS c ON c.oid = d.objid AND c.contype = 'f' AND c.confrelid = r.attrelid
        CROSS JOIN LATERAL unnest(c.confkey, c.conkey) AS k(referred_to, referring)
        WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = r.attrelid AND d.refobjsubid = r.attnum
          AND d.classid = 'pg_constraint'::regclass AND k.referred_to = r.attnum
        UNION ALL
        SELECT i.inhrelid, NULL, r.attname FROM pg_inherits AS i WHERE i.inhparent = r.attrelid
        UNION ALL
        SELECT i.inhparent, NULL, r.attname FROM pg_inherits AS i WHERE i.inhrelid = r.attrelid
    ) AS n
    JOIN pg_attribute AS a ON a.attrelid = n.relid AND (a.attnum = n.attnum OR a.attname = n.attname)
                          AND a.attnum > 0 AND NOT a.attisdropped
), tree AS (
    -- ALTER TABLE changes the type at the root of a tree, and in all members. A member of two trees has a
    -- row for each. Each lookup uses an index: a tree can have thousands of partitions.
    SELECT r.attrelid AS root, r.attrelid, r.attnum, r.attname
    FROM reached AS r
    WHERE NOT EXISTS (SELECT FROM pg_inherits AS i
                      JOIN pg_attribute AS p ON p.attrelid = i.inhparent AND p.attname = r.attname AND p.attnum > 0
                      WHERE i.inhrelid = r.attrelid)
    UNION
    SELECT t.root, a.attrelid, a.attnum, a.attname
    FROM tree AS t
    JOIN pg_inherits AS i ON i.inhparent = t.attrelid
    JOIN pg_attribute AS a ON a.attrelid = i.inhrelid AND a.attname = t.attname AND a.attnum > 0
)
SELECT array_agg((t.root, t.attrelid, t.attnum, t.attname, k.is_attached, k.is_narrow)::snowflake_internal.attach_member
                 ORDER BY k.is_attached DESC, t.attrelid <> t.root, t.root, t.attrelid, t.attnum)
FROM tree AS t
JOIN pg_attribute AS a ON a.attrelid = t.attrelid AND a.attnum = t.attnum
JOIN pg_type AS y ON y.oid = a.atttypid
CROSS JOIN LATERAL (
    SELECT t.root = $1 AND t.attname = (SELECT a.attname FROM pg_attribute AS a
                                        WHERE a.attrelid = $1 AND a.attnum = $2) AS is_attached,
           y.typoutput IN ('int4out'::regproc, 'int2out'::regproc) AS is_narrow -- a domain's is that of its base type
) AS k
$$;

-- Refuses columns in tables of other owners.
CREATE FUNCTION snowflake_internal.attach_require_owner(scope snowflake_internal.attach_member[]) RETURNS void
    LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    col CONSTANT snowflake_internal.attach_member := scope[1];
    others text;
BEGIN
    SELECT string_agg(DISTINCT format('table %s belongs to %s', s.tbl, c.relowner::regrole) COLLATE "C", E'\n')
    INTO others
    FROM unnest(scope) AS s JOIN pg_class AS c ON c.oid = s.tbl
    WHERE (s.is_attached OR s.is_narrow) AND NOT pg_has_role(c.relowner, 'USAGE');
    IF others IS NOT NULL THEN
        RAISE EXCEPTION 'must be owner of every table that is to be changed with column % of table %',
            quote_ident(col.column_name), col.tbl USING
            ERRCODE = 'insufficient_privilege',
            DETAIL = others,
            HINT = 'A role that is a member of all these owners can attach it.';
    END IF;
END;
$$;

-- The foreign keys of narrow columns, on either side, in the order in which they were made.
CREATE FUNCTION snowflake_internal.attach_keys(scope snowflake_internal.attach_member[])
    RETURNS SETOF pg_catalog.pg_constraint
    LANGUAGE sql STABLE STRICT PARALLEL SAFE ROWS 1 SET search_path = pg_catalog, pg_temp AS $$
SELECT DISTINCT ON (f.oid) f.*
FROM unnest($1) AS s
JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = s.tbl AND d.refobjsubid = s.attnum
                   AND d.classid = 'pg_constraint'::regclass
JOIN pg_constraint AS f ON f.oid = d.objid AND f.contype = 'f'
WHERE s.is_narrow
ORDER BY f.oid
$$;

-- The tables that are to be changed, and that this transaction has not locked.
CREATE FUNCTION snowflake_internal.attach_unlocked(scope snowflake_internal.attach_member[])
    RETURNS TABLE (relid oid, name text)
    LANGUAGE sql STABLE STRICT PARALLEL SAFE ROWS 1 SET search_path = pg_catalog, pg_temp AS $$
-- The other tables of foreign keys, too, as ALTER TABLE locks them. It needs no privilege for that, LOCK TABLE does.
SELECT c.oid, c.oid::regclass::text
FROM (SELECT s.tbl::oid FROM unnest($1) AS s WHERE s.is_attached OR s.is_narrow
      UNION
      SELECT e.relid
      FROM snowflake_internal.attach_keys($1) AS f CROSS JOIN LATERAL (VALUES (f.conrelid), (f.confrelid)) AS e(relid)
      WHERE has_table_privilege(e.relid, 'UPDATE, DELETE, TRUNCATE')) AS l(relid)
JOIN pg_class AS c ON c.oid = l.relid AND c.relkind IN ('r', 'p')
WHERE c.oid NOT IN (SELECT k.relation FROM pg_locks AS k
                    WHERE k.pid = pg_backend_pid() AND k.locktype = 'relation' AND k.mode = 'AccessExclusiveLock'
                      AND k.granted
                      AND k.database = (SELECT b.oid FROM pg_database AS b WHERE b.datname = current_database()))
$$;

-- Locks the tables that are to be changed, in tries until lock_timeout after the start; false: all were locked before.
-- No order of the tables is right for all writers: an INSERT locks the referring table first, a transaction that updates
-- the other table before it locks that one first. So a try releases its locks before a client that waits for one of
-- them looks for a deadlock, deadlock_timeout after it began to wait. Only the first lock of a try may take longer: a
-- session that holds no other lock takes part in no deadlock, and only a long wait cancels an autovacuum.
CREATE FUNCTION snowflake_internal.attach_lock(scope snowflake_internal.attach_member[], started timestamptz)
    RETURNS boolean LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    given CONSTANT text := current_setting('lock_timeout');
    call_ends CONSTANT timestamptz := started + nullif(given::interval, '0'); -- NULL: never
    try_time CONSTANT interval := least(current_setting('deadlock_timeout')::interval, nullif(given::interval, '0')) / 4;
    tries integer := 0;
    try_ends timestamptz;
    wait_ends timestamptz;
    next record; -- the table to lock
    missed oid;  -- the table that was not free is the first of the next try
BEGIN
    LOOP
        tries := tries + 1;
        try_ends := clock_timestamp() + try_time;
        wait_ends := call_ends;
        BEGIN
            FOR next IN
                SELECT u.* FROM snowflake_internal.attach_unlocked(scope) AS u
                ORDER BY u.relid IS DISTINCT FROM missed, u.relid::bigint * CASE tries % 2 WHEN 1 THEN -1 ELSE 1 END
            LOOP
                PERFORM set_config('lock_timeout', greatest(0, ceil(
                    1000 * extract(epoch FROM coalesce(wait_ends - clock_timestamp(), '0'))))::text, true);
                EXECUTE format('LOCK TABLE ONLY %s IN ACCESS EXCLUSIVE MODE%s', next.name,
                               CASE WHEN wait_ends <= clock_timestamp() THEN ' NOWAIT' END);
                wait_ends := try_ends;
            END LOOP;
            IF NOT FOUND THEN
                RETURN tries > 1;
            END IF;
            -- Others may have committed a foreign key or a child before the locks were granted.
            scope := snowflake_internal.attach_scope(scope[1].tbl, scope[1].attnum);
            IF EXISTS (SELECT FROM snowflake_internal.attach_unlocked(scope)) THEN
                RAISE lock_not_available;
            END IF;
            PERFORM set_config('lock_timeout', given, true);
            RETURN true;
        EXCEPTION WHEN lock_not_available OR undefined_table THEN -- or renamed
            missed := next.relid;
        END;
        IF clock_timestamp() >= call_ends THEN
            PERFORM snowflake_internal.attach_raise_held(scope, tries, given);
        END IF;
        PERFORM pg_sleep_for(random() * try_time);
        scope := snowflake_internal.attach_scope(scope[1].tbl, scope[1].attnum);
    END LOOP;
END;
$$;

-- The error of tables that others held: their names, and the processes and roles that hold them now.
CREATE FUNCTION snowflake_internal.attach_raise_held(
        scope snowflake_internal.attach_member[], tries integer, lock_timeout text) RETURNS void
    LANGUAGE plpgsql STABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    col CONSTANT snowflake_internal.attach_member := scope[1];
    listed text;
BEGIN
    SELECT string_agg(format('table %s: %s', u.name, coalesce(h.holders, 'free now')), E'\n' ORDER BY u.name COLLATE "C")
    INTO listed
    FROM snowflake_internal.attach_unlocked(scope) AS u
    CROSS JOIN LATERAL (
        SELECT string_agg(DISTINCT coalesce('process ' || k.pid || coalesce(' of role ' || a.usesysid::regrole, ''),
                                            'a prepared transaction'), ', ') AS holders
        FROM pg_locks AS k LEFT JOIN pg_stat_activity AS a ON a.pid = k.pid
        WHERE k.relation = u.relid AND k.granted AND k.pid IS DISTINCT FROM pg_backend_pid()
          AND k.database = (SELECT b.oid FROM pg_database AS b WHERE b.datname = current_database())) AS h;
    RAISE EXCEPTION 'column % of table % is not attached: its tables were not free within lock_timeout (%)',
        quote_ident(col.column_name), col.tbl, lock_timeout USING ERRCODE = 'lock_not_available',
        DETAIL = format(E'Tries: %s. Locks are held on\n%s', tries, listed),
        HINT = 'Attach again when the transactions of these processes have ended, or with a larger lock_timeout.';
END;
$$;

-- The largest value of the column, NULL: no rows; an error if there are rows without one.
CREATE FUNCTION snowflake_internal.attach_largest(scope snowflake_internal.attach_member[]) RETURNS bigint
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    col CONSTANT snowflake_internal.attach_member := scope[1];
    member record;
    found record;
    largest bigint;
    nulls bigint := 0;
BEGIN
    FOR member IN
        SELECT s.tbl, s.attnum, c.relkind FROM unnest(scope) AS s JOIN pg_class AS c ON c.oid = s.tbl
        WHERE s.is_attached AND c.relkind <> 'p'
    LOOP
        IF member.relkind = 'f' THEN
            RAISE NOTICE 'foreign table % was not looked at for its largest ID', member.tbl;
            CONTINUE;
        END IF;
        SELECT e.* INTO found FROM snowflake_internal.column_end(member.tbl, member.attnum, 9223372036854775807) AS e;
        largest := greatest(largest, found.largest);
        nulls := nulls + found.nulls;
    END LOOP;
    IF nulls > 0 THEN
        RAISE EXCEPTION 'column % of table % contains null values', quote_ident(col.column_name), col.tbl USING
            ERRCODE = 'not_null_violation',
            DETAIL = format('Rows without an ID: %s.', nulls),
            HINT = format('Give each of them a number: UPDATE %s SET %I = ... WHERE %2$I IS NULL;',
                          col.tbl, col.column_name);
    END IF;
    RETURN largest;
END;
$$;
