-- Shards: the catalogue as their registry, and making one.
-- All functions run with the caller's rights and with a search_path of their own. In dynamic SQL, a table appears as
-- regclass and a role as regrole, which quote themselves, any other name through %I or %L.

CREATE FUNCTION snowflake_shard_for(key bigint, shards integer) RETURNS integer
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'snowflake_shard_for';
COMMENT ON FUNCTION snowflake_shard_for(bigint, integer) IS
    'the shard of a key among a number of shards: key % shards, never negative';

-- A call of snowflake_next_id() that an object makes, with the arguments as stored (NULL: no constant).
-- An object also makes the calls of the functions and of the domain that it depends on.
CREATE TYPE snowflake_internal.call AS (
    classid oid, objid oid, objsubid integer, -- a column (pg_class), a function (pg_proc) or a domain (pg_type)
    schema oid,
    function oid,      -- that it goes through; NULL: none
    shard integer,
    seq oid,
    epoch_ms bigint,
    home oid,          -- the schema of the object whose expression holds the call
    is_direct boolean, -- which is this object
    is_plain boolean); -- the call is the whole expression, but for casts

-- The calls of every column default, SQL function and domain.
CREATE FUNCTION snowflake_internal.calls() RETURNS SETOF snowflake_internal.call
    LANGUAGE c STABLE STRICT PARALLEL RESTRICTED ROWS 10000 AS 'MODULE_PATHNAME', 'snowflake_calls';

-- The calls of one object, direct ones first; no rows where it makes no IDs.
CREATE FUNCTION snowflake_internal.call_of(classid oid, objid oid, objsubid integer)
    RETURNS SETOF snowflake_internal.call
    LANGUAGE c STABLE STRICT PARALLEL RESTRICTED ROWS 1 AS 'MODULE_PATHNAME', 'snowflake_call_of';

-- Locks a shard number and a schema name until the transaction ends; an error if another schema makes its IDs.
CREATE FUNCTION snowflake_internal.claim_shard(shard integer, schema_name name) RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_claim_shard';

-- The same for several: the time of a claim grows with the number of shards of the database. Without a transaction block they are locked
-- until the session ends.
CREATE FUNCTION snowflake_internal.claim_shards(shards integer[], schema_names name[]) RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_claim_shards';

-- The Unix millisecond of a sequence's last_value: a position, or an ID of this epoch that setval() has stored.
CREATE FUNCTION snowflake_internal.stored_ms(last_value bigint, epoch_ms bigint) RETURNS bigint
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'snowflake_stored_ms';

-- The stored value of a sequence; NULL if the caller may not read it, and if somebody holds it in ACCESS EXCLUSIVE mode: this does not wait.
CREATE FUNCTION snowflake_internal.stored_value(seq oid, OUT last_value bigint, OUT is_called boolean)
    LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'snowflake_stored_value';

-- Nobody draws from the sequence until the transaction ends; readers do not wait. The right is that of setval().
CREATE FUNCTION snowflake_internal.lock_sequence(seq oid) RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_lock_sequence';

-- The schema stays until the transaction ends, and in some releases its name, too: for roles that may act as its owner, or create objects in it.
CREATE FUNCTION snowflake_internal.lock_schema(schema regnamespace) RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_lock_schema';

CREATE VIEW snowflake_columns AS
    SELECT n.nspname AS schema_name, c.relname AS table_name, a.attname AS column_name,
           k.function::pg_catalog.regprocedure AS function, k.shard,
           k.seq::pg_catalog.regclass AS seq, k.epoch_ms
    FROM snowflake_internal.calls() AS k
    JOIN pg_catalog.pg_class AS c ON c.oid OPERATOR(pg_catalog.=) k.objid
    JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
    JOIN pg_catalog.pg_attribute AS a
      ON a.attrelid OPERATOR(pg_catalog.=) k.objid AND a.attnum OPERATOR(pg_catalog.=) k.objsubid
    WHERE k.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid
      AND NOT pg_catalog.pg_is_other_temp_schema(n.oid);
COMMENT ON VIEW snowflake_columns IS
    'columns whose DEFAULT makes IDs, a row for each call in it: through which function, of which shard, '
    'from which sequence, with which epoch';
GRANT SELECT ON snowflake_columns TO PUBLIC;

CREATE VIEW snowflake_shards AS
    SELECT k.shard, n.nspname AS schema_name,
           -- Of several functions the first made stands for the schema, with its own sequence.
           pg_catalog.min(k.proc)::pg_catalog.regprocedure AS function,
           CASE WHEN pg_catalog.count(k.proc) OPERATOR(pg_catalog.>) 0
                THEN (pg_catalog.array_agg(k.seq ORDER BY k.proc))[1] -- no function: NULL, and last
                WHEN pg_catalog.count(DISTINCT k.seq) OPERATOR(pg_catalog.=) 1
                THEN pg_catalog.min(k.seq)
           END::pg_catalog.regclass AS seq,
           k.epoch_ms
    FROM (SELECT d.*,
                 CASE WHEN d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass::pg_catalog.oid
                      THEN d.objid END AS proc
          FROM snowflake_internal.calls() AS d
          -- A column that goes through a function or a domain is of that one's schema.
          WHERE d.is_direct AND d.shard IS NOT NULL) AS k
    JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) k.schema
    -- Any role may make temporary tables, and so would make a shard of any number. They end with their session.
    WHERE n.nspname OPERATOR(pg_catalog.!~) '^pg_(toast_)?temp_'
    GROUP BY k.shard, n.nspname, k.epoch_ms;
COMMENT ON VIEW snowflake_shards IS
    'shards of this database, a row each (more where a schema uses two epochs): its schema, '
    'its function and that one''s sequence; function NULL: its columns draw directly, seq NULL: '
    'from sequences of their own';
GRANT SELECT ON snowflake_shards TO PUBLIC;

CREATE VIEW snowflake_sequences AS
    SELECT s.seq::pg_catalog.regclass AS seq, s.shard, s.epoch_ms,
           CASE WHEN s.used THEN pg_catalog.to_timestamp(s.ms OPERATOR(pg_catalog./) 1000::pg_catalog.float8)
               END AS last_id_at,
           CASE WHEN s.used THEN s.last_value OPERATOR(pg_catalog.&) 1023 END::integer AS last_counter,
           CASE WHEN s.used THEN pg_catalog.to_timestamp(s.ms OPERATOR(pg_catalog./) 1000::pg_catalog.float8)
                                 OPERATOR(pg_catalog.-) pg_catalog.clock_timestamp() END AS lead
    FROM (SELECT m.*, m.is_called
                 -- A smaller value has no time: it counts IDs of the PL/pgSQL function, or none.
                 AND m.last_value OPERATOR(pg_catalog.>=) (1::bigint OPERATOR(pg_catalog.<<) 45)
                 -- No ID is older than its epoch, which can be any number; a timestamp cannot.
                 AND m.ms OPERATOR(pg_catalog.>=) GREATEST(0, m.epoch_ms) AS used
          FROM (SELECT k.*, v.*, snowflake_internal.stored_ms(v.last_value, k.epoch_ms) AS ms
                FROM (SELECT DISTINCT d.seq, d.shard, d.epoch_ms FROM snowflake_internal.calls() AS d) AS k
                -- Anybody can write a DEFAULT that names a table where a sequence should stand.
                JOIN pg_catalog.pg_sequence AS q ON q.seqrelid OPERATOR(pg_catalog.=) k.seq
                JOIN pg_catalog.pg_class AS c ON c.oid OPERATOR(pg_catalog.=) k.seq
                     AND NOT pg_catalog.pg_is_other_temp_schema(c.relnamespace)
                CROSS JOIN LATERAL snowflake_internal.stored_value(k.seq) AS v) AS m) AS s;
COMMENT ON VIEW snowflake_sequences IS
    'sequences that IDs are drawn from: shard, epoch, time and counter of the last ID, '
    'and how far it leads the clock (negative: how long ago it was made); '
    'NULL where the sequence is unused or may not be read';
GRANT SELECT ON snowflake_sequences TO PUBLIC;

-- The call of snowflake_next_id() as SQL text, for a DEFAULT or a function.
CREATE FUNCTION snowflake_internal.call_text(shard integer, seq regclass, epoch_ms bigint) RETURNS text
    LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
-- The epoch that the function has of itself is not written.
SELECT format('%s.snowflake_next_id(%s, %L::pg_catalog.regclass%s)', e.extnamespace::regnamespace, $1, $2,
              CASE WHEN $3 <> snowflake_internal.default_epoch() THEN format(', %s::bigint', $3) END)
FROM pg_extension AS e WHERE e.extname = 'snowflake'
$$;

-- Makes settled_id() in the schema of a shard, unless a function of that name is there.
CREATE FUNCTION snowflake_internal.make_settled_id(shard integer, schema_name name, seq regclass, epoch_ms bigint)
    RETURNS void LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    -- A function of that name can be the application's.
    IF to_regprocedure(format('%I.settled_id()', schema_name)) IS NULL THEN
        EXECUTE format('CREATE FUNCTION %I.settled_id() RETURNS bigint LANGUAGE sql VOLATILE PARALLEL UNSAFE RETURN %s',
                       schema_name, replace(snowflake_internal.call_text(shard, seq, epoch_ms),
                                            '.snowflake_next_id(', '.snowflake_settled_id('));
        EXECUTE format('COMMENT ON FUNCTION %I.settled_id() IS %L', schema_name,
                       'ID at or below which no new row can appear: see snowflake_settled_id()');
    END IF;
END;
$$;

CREATE FUNCTION snowflake_create_shard(shard integer, schema_name name,
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
COMMENT ON FUNCTION snowflake_create_shard(integer, name, bigint) IS
    'makes a schema a logical shard: its sequence table_id_seq and its function next_id(), '
    'for DEFAULTs of all its tables, and settled_id(), for consumers of new rows';

CREATE FUNCTION snowflake_create_shard(shard integer)
    RETURNS void LANGUAGE sql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
    -- Bound here, to these types exactly: the schema can hold functions of others.
    RETURN snowflake_create_shard(shard, pg_catalog.format('shard%s', shard)::pg_catalog.name, snowflake_internal.default_epoch());
COMMENT ON FUNCTION snowflake_create_shard(integer) IS
    'the same, in a schema that is named shard and the number: shard7';
