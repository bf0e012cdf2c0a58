\echo Use "CREATE EXTENSION snowflake" to load this file. \quit
-- The schema of the functions that only the extension's own functions call. Its name is fixed, so that no search_path
-- decides which of them is called. A schema of that name that exists already is an error. The public functions run with
-- the caller's rights, so every role needs USAGE. Nobody is granted CREATE.

CREATE SCHEMA snowflake_internal;
GRANT USAGE ON SCHEMA snowflake_internal TO PUBLIC;
COMMENT ON SCHEMA snowflake_internal IS
    'functions that the extension snowflake uses itself; they can change with every version';

-- The epoch of a call without epoch_ms: 2011-08-24 21:07:01.721 UTC in Unix milliseconds.
-- The only place of this number in SQL. In C++ it is kInstagramEpoch; sql/layout.sql compares the two.
CREATE FUNCTION snowflake_internal.default_epoch() RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    RETURN 1314220021721;

-- For the statements in hints: the extension's schema, unless that is public. A function with a search_path does not know its caller's.
CREATE FUNCTION snowflake_internal.prefix() RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
SELECT format('%I.', n.nspname) FROM pg_extension AS e JOIN pg_namespace AS n ON n.oid = e.extnamespace
WHERE e.extname = 'snowflake' AND n.nspname <> 'public'
$$;

-- Public functions for the bodies in text. The owner of the extension's schema can rename it, so no body may name it.

CREATE FUNCTION snowflake_internal.encode(created_at timestamptz, shard integer, seq integer, epoch_ms bigint) RETURNS bigint
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'snowflake_encode';

CREATE FUNCTION snowflake_internal.min_id(ts timestamptz, epoch_ms bigint) RETURNS bigint
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'snowflake_min_id';

CREATE FUNCTION snowflake_internal.time_of(id bigint, epoch_ms bigint) RETURNS timestamptz
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'snowflake_timestamp';

CREATE FUNCTION snowflake_internal.advance(seq regclass, past_id bigint, epoch_ms bigint) RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_advance';
-- Functions that make IDs.

CREATE FUNCTION snowflake_next_id(shard integer, seq regclass) RETURNS bigint
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_next_id';
COMMENT ON FUNCTION snowflake_next_id(integer, regclass) IS 'next ID of a shard (0 to 8191), drawn from a sequence';

CREATE FUNCTION snowflake_next_id(shard integer, seq regclass, epoch_ms bigint) RETURNS bigint
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_next_id';
COMMENT ON FUNCTION snowflake_next_id(integer, regclass, bigint) IS
    'next ID of a shard (0 to 8191), drawn from a sequence, its time counted from another epoch (Unix ms)';

-- The sequence of the function without arguments. Its value is dumped, like a configuration
-- table's. In a trusted installation the bootstrap superuser would own it: the installing role uses it, and lets
-- others use it. A GRANT would remain in pg_init_privs after that role is dropped.
CREATE SEQUENCE snowflake_id_seq AS bigint;
COMMENT ON SEQUENCE snowflake_id_seq IS 'position of snowflake_next_id(): Unix milliseconds << 10 | counter';
SELECT pg_catalog.pg_extension_config_dump('snowflake_id_seq', '');
ALTER SEQUENCE snowflake_id_seq OWNER TO @extowner@;

CREATE FUNCTION snowflake_next_id() RETURNS bigint
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_next_id_default';
COMMENT ON FUNCTION snowflake_next_id() IS
    'next ID of the shard in the setting snowflake.shard, drawn from snowflake_id_seq';

CREATE FUNCTION snowflake_next_ids(shard integer, seq regclass, n integer) RETURNS SETOF bigint
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_next_ids';
COMMENT ON FUNCTION snowflake_next_ids(integer, regclass, integer) IS
    'n increasing IDs of a shard, drawn from a sequence in blocks';

CREATE FUNCTION snowflake_next_ids(shard integer, seq regclass, n integer, epoch_ms bigint) RETURNS SETOF bigint
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_next_ids';
COMMENT ON FUNCTION snowflake_next_ids(integer, regclass, integer, bigint) IS
    'n increasing IDs of a shard, drawn from a sequence in blocks, their time counted from another epoch (Unix ms)';

CREATE FUNCTION snowflake_advance(seq regclass, past_id bigint) RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_advance';
COMMENT ON FUNCTION snowflake_advance(regclass, bigint) IS
    'makes every later ID of the sequence greater than past_id; never moves it back';

CREATE FUNCTION snowflake_advance(seq regclass, past_id bigint, epoch_ms bigint) RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_advance';
COMMENT ON FUNCTION snowflake_advance(regclass, bigint, bigint) IS
    'makes every later ID of the sequence greater than past_id, read with another epoch (Unix ms); never moves it back';
-- Functions for consumers that read rows in the order of their IDs.
--
--   25001         in REPEATABLE READ or SERIALIZABLE
--   25006         the sequence makes no IDs here: a move or a split has closed it, or it is a copy of Citus
--   55000         on a standby; the column's DEFAULT does not name one shard, sequence and epoch
--   42501, 42809, 42P01, 42703, 22003   no SELECT or USAGE; no sequence; no relation; no column; no shard
--   55P03, 57014, 40P01   lock_timeout; statement_timeout or a cancel; a deadlock, while it waits

CREATE FUNCTION snowflake_settled_id(shard integer, seq regclass) RETURNS bigint
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_settled_id';
COMMENT ON FUNCTION snowflake_settled_id(integer, regclass) IS
    'the ID at or below which no new row of the sequence can appear; waits for the transactions that have drawn. '
    'Read the rows in the next statement';

CREATE FUNCTION snowflake_settled_id(shard integer, seq regclass, epoch_ms bigint) RETURNS bigint
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_settled_id';
COMMENT ON FUNCTION snowflake_settled_id(integer, regclass, bigint) IS 'the same with another epoch (Unix ms)';

CREATE FUNCTION snowflake_settled_id(tab regclass, col name DEFAULT 'id') RETURNS bigint
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_settled_id_of';
COMMENT ON FUNCTION snowflake_settled_id(regclass, name) IS
    'the same for the shard, the sequence and the epoch in the DEFAULT of a column';

-- Whether an object calls snowflake_settled_id(): it names a sequence and draws nothing from it.
CREATE FUNCTION snowflake_internal.asks_settled(classid oid, objid oid) RETURNS boolean
    LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
SELECT EXISTS (
    SELECT FROM pg_depend AS d
    JOIN pg_proc AS p ON p.oid = d.refobjid AND p.proname = 'snowflake_settled_id'
    JOIN pg_extension AS e ON e.extnamespace = p.pronamespace AND e.extname = 'snowflake'
    WHERE d.classid = $1 AND d.objid = $2 AND d.refclassid = 'pg_proc'::regclass)
$$;
-- Functions that read IDs, build them, and bound them by time.

CREATE FUNCTION snowflake_timestamp(id bigint) RETURNS timestamptz
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'snowflake_timestamp';
COMMENT ON FUNCTION snowflake_timestamp(bigint) IS 'the millisecond at which an ID was made';

CREATE FUNCTION snowflake_timestamp(id bigint, epoch_ms bigint) RETURNS timestamptz
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'snowflake_timestamp';
COMMENT ON FUNCTION snowflake_timestamp(bigint, bigint) IS
    'the millisecond at which an ID was made, counted from another epoch (Unix ms)';

CREATE FUNCTION snowflake_shard(id bigint) RETURNS integer
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'snowflake_shard';
COMMENT ON FUNCTION snowflake_shard(bigint) IS 'the logical shard of an ID, 0 to 8191';

CREATE FUNCTION snowflake_seq(id bigint) RETURNS integer
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'snowflake_seq';
COMMENT ON FUNCTION snowflake_seq(bigint) IS 'the counter of an ID, 0 to 1023';

CREATE FUNCTION snowflake_decode(id bigint, OUT created_at timestamptz, OUT shard integer, OUT seq integer)
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'snowflake_decode';
COMMENT ON FUNCTION snowflake_decode(bigint) IS 'time, shard and counter of an ID';

CREATE FUNCTION snowflake_decode(id bigint, epoch_ms bigint, OUT created_at timestamptz, OUT shard integer,
                                 OUT seq integer)
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'snowflake_decode';
COMMENT ON FUNCTION snowflake_decode(bigint, bigint) IS
    'time, shard and counter of an ID, the time counted from another epoch (Unix ms)';

CREATE FUNCTION snowflake_encode(created_at timestamptz, shard integer, seq integer) RETURNS bigint
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'snowflake_encode';
COMMENT ON FUNCTION snowflake_encode(timestamptz, integer, integer) IS
    'the ID of a time, a shard (0 to 8191) and a counter (0 to 1023)';

CREATE FUNCTION snowflake_encode(created_at timestamptz, shard integer, seq integer, epoch_ms bigint) RETURNS bigint
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'snowflake_encode';
COMMENT ON FUNCTION snowflake_encode(timestamptz, integer, integer, bigint) IS
    'the ID of a time, a shard (0 to 8191) and a counter (0 to 1023), with another epoch (Unix ms)';

CREATE FUNCTION snowflake_min_id(ts timestamptz) RETURNS bigint
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'snowflake_min_id';
COMMENT ON FUNCTION snowflake_min_id(timestamptz) IS
    'the smallest ID with a time at or after ts: id >= snowflake_min_id(ts) means snowflake_timestamp(id) >= ts';

CREATE FUNCTION snowflake_min_id(ts timestamptz, epoch_ms bigint) RETURNS bigint
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'snowflake_min_id';
COMMENT ON FUNCTION snowflake_min_id(timestamptz, bigint) IS
    'the smallest ID with a time at or after ts, with another epoch (Unix ms)';

CREATE FUNCTION snowflake_max_id(ts timestamptz) RETURNS bigint
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'snowflake_max_id';
COMMENT ON FUNCTION snowflake_max_id(timestamptz) IS
    'the largest ID with a time at or before ts: id <= snowflake_max_id(ts) means snowflake_timestamp(id) <= ts';

CREATE FUNCTION snowflake_max_id(ts timestamptz, epoch_ms bigint) RETURNS bigint
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'snowflake_max_id';
COMMENT ON FUNCTION snowflake_max_id(timestamptz, bigint) IS
    'the largest ID with a time at or before ts, with another epoch (Unix ms)';

-- Planner support of snowflake_between: its index condition and selectivity.
CREATE FUNCTION snowflake_internal.between_support(internal) RETURNS internal
    LANGUAGE c STRICT AS 'MODULE_PATHNAME', 'snowflake_between_support';

-- LEAKPROOF: it raises no error for any arguments, and so serves a query behind a policy or a security_barrier view.
CREATE FUNCTION snowflake_between(id bigint, from_ts timestamptz, to_ts timestamptz) RETURNS boolean
    LANGUAGE c IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE
    SUPPORT snowflake_internal.between_support
    AS 'MODULE_PATHNAME', 'snowflake_between';
COMMENT ON FUNCTION snowflake_between(bigint, timestamptz, timestamptz) IS
    'whether an ID was made in [from_ts, to_ts); an index on id serves it';
-- IDs as text.

CREATE FUNCTION snowflake_to_text(id bigint, encoding text DEFAULT 'base32') RETURNS text
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'snowflake_to_text';
COMMENT ON FUNCTION snowflake_to_text(bigint, text) IS
    'an ID as text: base32 (Crockford, 13 characters), base62 or base58 (11; '
    'all three sort as the IDs do under COLLATE "C"), base64url (Instagram''s shortcode)';

CREATE FUNCTION snowflake_from_text(id text, encoding text DEFAULT 'base32') RETURNS bigint
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'snowflake_from_text';
COMMENT ON FUNCTION snowflake_from_text(text, text) IS
    'the ID that snowflake_to_text() wrote; base32 also in lower case';
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
    SELECT p.oid::regprocedure AS function, c.shard, c.seq, c.epoch_ms, c.is_plain INTO present
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
                        THEN format('If it is a PL/pgSQL function of this scheme: SELECT %ssnowflake_adopt(%L, %s).',
                                    snowflake_internal.prefix(), present.function, shard)
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
-- Checks that the functions which make, convert and adopt shards share.

-- Refuses a transaction whose snapshot does not show the commits of others; function and arguments are for the hint.
CREATE FUNCTION snowflake_internal.require_read_committed(function text, arguments text) RETURNS void
    LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    -- A snapshot older than the locks shows an old catalogue, and an old max() of a column.
    IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
        RAISE EXCEPTION '%() cannot run in a % transaction',
            function, upper(current_setting('transaction_isolation')) USING
            ERRCODE = 'active_sql_transaction',
            DETAIL = 'It must see the commits of other sessions until it has its locks.',
            HINT = format('BEGIN ISOLATION LEVEL READ COMMITTED; SELECT %s(%s); COMMIT;', function, arguments);
    END IF;
END;
$$;

-- Whether a sequence of this shape (columns of pg_sequence) can hold positions for ten years to come.
CREATE FUNCTION snowflake_internal.holds_position(seqtypid oid, seqincrement bigint, seqmax bigint) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
SELECT $1 = 'bigint'::regtype AND $2 = 1
       AND $3 >= ((extract(epoch FROM clock_timestamp()) + 315360000) * 1000)::bigint << 10
$$;

-- The statement after which a sequence can hold positions, as a hint; with a condition where its limits may be there on
-- purpose: servers that replicate to each other may share a range by them. A serial column's are those of its type.
CREATE FUNCTION snowflake_internal.reshape_hint(seq regclass) RETURNS text
    LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
SELECT format(CASE WHEN s.seqincrement = 1 AND s.seqmax IN (32767, 2147483647) THEN '%s'
                   ELSE 'If no replication or other program has set these limits: %s If one has, '
                        'draw from another sequence.' END,
              format('ALTER SEQUENCE %s AS bigint INCREMENT BY 1 NO MAXVALUE;', $1))
FROM pg_sequence AS s WHERE s.seqrelid = $1
$$;

-- Whether a sequence has the bounds that Citus gives a copy on a worker.
CREATE FUNCTION snowflake_internal.is_citus_copy(seqmin bigint, seqmax bigint) RETURNS boolean
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'snowflake_is_citus_copy';

-- False for a sequence that snowflake-shard move has closed, and for a copy on a Citus worker: they make no IDs here.
CREATE FUNCTION snowflake_internal.is_open(seqmin bigint, seqmax bigint) RETURNS boolean
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'snowflake_is_open';

-- Whether the database has the record of a move or a split, which set sequences to their end while they close shards.
CREATE FUNCTION snowflake_internal.has_record() RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = 'snowflake_split' OR starts_with(nspname, 'snowflake_move_'))
$$;

-- Refuses a sequence that snowflake-shard move has closed, and a copy on a Citus worker, as a draw does.
CREATE FUNCTION snowflake_internal.require_open(seq regclass) RETURNS void
    LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'snowflake_require_open';

-- Refuses an object that is no sequence, and a sequence that cannot hold positions for ten years; with this hint.
CREATE FUNCTION snowflake_internal.require_sequence(seq regclass, hint text DEFAULT NULL) RETURNS void
    LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    shape pg_sequence;
BEGIN
    PERFORM snowflake_internal.require_open(seq);
    SELECT * INTO shape FROM pg_sequence AS s WHERE s.seqrelid = seq;
    IF NOT FOUND THEN
        RAISE EXCEPTION '% is not a sequence', seq USING ERRCODE = 'wrong_object_type';
    ELSIF NOT snowflake_internal.holds_position(shape.seqtypid, shape.seqincrement, shape.seqmax) THEN
        RAISE EXCEPTION 'sequence % cannot hold a position', seq USING ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = format('It is %s with INCREMENT %s and MAXVALUE %s; '
                            'a position is a bigint that grows by 1024 each millisecond and by 1 each ID.',
                            shape.seqtypid::regtype, shape.seqincrement, shape.seqmax),
            HINT = coalesce(hint, snowflake_internal.reshape_hint(seq));
    END IF;
END;
$$;

-- Refuses a column with an ID that is further ahead of the clock than new ones may be.
CREATE FUNCTION snowflake_internal.require_reach(tbl regclass, column_name name, largest bigint, epoch_ms bigint)
    RETURNS void LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    max_drift bigint;
    max_lead bigint;
    lead bigint;
BEGIN
    -- A number that is no ID of this epoch can be far in the future, read as one. With its sequence behind
    -- such a number the generator would refuse each INSERT until the clock has reached it.
    SELECT min(p.setting::bigint) FILTER (WHERE p.name = 'snowflake.max_drift'),
           min(p.setting::bigint) FILTER (WHERE p.name = 'snowflake.max_lead')
    INTO max_drift, max_lead FROM pg_settings AS p;
    lead := (largest >> 23) + epoch_ms - floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint;
    IF largest > 0 AND max_drift >= 0 AND lead > greatest(max_drift, max_lead) THEN
        RAISE EXCEPTION 'column % of table % holds %: new IDs cannot be above that',
            quote_ident(column_name), tbl, largest USING
            ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = format('Read as an ID it is of a time %s ms from now; snowflake.max_drift is %s ms.',
                            lead, max_drift),
            HINT = format('Give other numbers to the rows of SELECT * FROM %s WHERE %I > %ssnowflake_max_id(now(), %s);',
                          tbl, column_name, snowflake_internal.prefix(), epoch_ms);
    END IF;
END;
$$;

-- The largest value up to a maximum, and the number of NULLs, in a column of the caller's table: by an index that
-- begins with it, or all rows. Plans no query: the planner would evaluate constants in the indexes, statistics and
-- constraints of the table, and so run functions of the roles that made them.
CREATE FUNCTION snowflake_internal.column_end(tbl oid, attnum integer, maximum bigint, OUT largest bigint,
                                              OUT nulls bigint)
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_column_end';
-- From an old next_id() function to the native one, in place. The old function is called and its IDs are looked at; its
-- body is not read. The steps are functions of their own, here and in the two parts after this one.
-- The old function must run as in an INSERT: with the caller's rights and the caller's search_path. So snowflake_adopt()
-- and adopt_call() have no SET clause, and each name and operator in them has its schema.

-- One call of a function that snowflake_adopt() observes.
CREATE TYPE snowflake_internal.observation AS (
    id bigint,           -- the result of the old function
    before timestamptz,  -- the clock before the call
    after timestamptz,   -- the clock after it
    last_value bigint,   -- lastval() after it
    seqs oid[]);         -- the sequences, of those that are possible, with currval() = lastval()

-- snowflake_adopt('schema.function()', shard 0..8191 [, seq] [, epoch_ms])
--
--   42883, 42501  no such function; not the owner of the function or of its sequence
--   42809         it has arguments, or does not return one bigint; seq is no sequence
--   22004, 22003, 42710   the shard is NULL; is none; is another schema's
--   42P13         its IDs are not those of this shard, sequence and epoch: the message shows the observed ones
--   22008         its IDs are negative: its epoch is in the future, or so old that 41 bits have overflowed
--   55000         the sequence cannot hold positions, or is used by others; the function was changed meanwhile
--   25001, 25006  isolation above READ COMMITTED; read-only
--   An error of the old function itself is raised as it is.
CREATE FUNCTION snowflake_adopt(legacy regprocedure, shard integer, seq regclass DEFAULT NULL,
                                epoch_ms bigint DEFAULT NULL)
    RETURNS void LANGUAGE plpgsql VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE
AS $$
DECLARE
    calls snowflake_internal.observation[];
    resume_at bigint;
BEGIN
    IF NOT snowflake_internal.adopt_check(legacy, shard, seq, epoch_ms)
       OR NOT snowflake_internal.adopt_claim(legacy, shard, seq, epoch_ms) THEN
        RETURN;
    END IF;

    -- Two calls show the sequence. It is locked then, and others who draw from it wait.
    calls := ARRAY[snowflake_internal.adopt_call(legacy, seq), snowflake_internal.adopt_call(legacy, seq)];
    seq := snowflake_internal.adopt_sequence(legacy, shard, seq, calls);

    WHILE snowflake_internal.adopt_needs_more(calls) LOOP
        PERFORM pg_catalog.pg_sleep(0.001);
        calls := pg_catalog.array_append(calls, snowflake_internal.adopt_call(legacy, seq));
    END LOOP;

    -- A last call with a far larger value of the sequence: a counter that is wider than its field shows now.
    resume_at := snowflake_internal.adopt_jump(seq);
    calls := pg_catalog.array_append(calls, snowflake_internal.adopt_call(legacy, seq));
    EXECUTE pg_catalog.concat('ALTER SEQUENCE ', seq, ' RESTART WITH ', resume_at);

    epoch_ms := snowflake_internal.adopt_judge(legacy, shard, seq, epoch_ms, calls);
    PERFORM snowflake_internal.adopt_replace(legacy, shard, seq, epoch_ms, calls);
END;
$$;
COMMENT ON FUNCTION snowflake_adopt(regprocedure, integer, regclass, bigint) IS
    'replaces an Instagram-style function by the native one in place, '
    'after it has observed that its IDs are of this shard';

-- The errors of snowflake_adopt() before it waits or calls; false: the function is native already.
CREATE FUNCTION snowflake_internal.adopt_check(legacy regprocedure, shard integer, seq regclass, epoch_ms bigint)
    RETURNS boolean LANGUAGE plpgsql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    old pg_proc;
BEGIN
    SELECT * INTO old FROM pg_proc AS p WHERE p.oid = legacy;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'function % does not exist', coalesce(legacy::oid::text, 'NULL') USING
            ERRCODE = 'undefined_function';
    ELSIF NOT pg_has_role(old.proowner, 'USAGE') THEN
        RAISE EXCEPTION 'must be owner of function %', legacy USING ERRCODE = 'insufficient_privilege';
    ELSIF shard IS NULL THEN
        RAISE EXCEPTION 'the shard of function % must not be NULL', legacy USING ERRCODE = 'null_value_not_allowed';
    END IF;
    PERFORM snowflake_internal.require_read_committed(
        'snowflake_adopt'::text,
        concat_ws(', ', quote_literal(legacy::text), shard, 'seq => ' || quote_literal(seq::text),
                  'epoch_ms => ' || epoch_ms));
    IF EXISTS (SELECT FROM snowflake_internal.call_of('pg_proc'::regclass::oid, legacy::oid, 0)) THEN
        RAISE NOTICE 'function % is native already', legacy;
        RETURN false;
    ELSIF old.prokind <> 'f' OR old.pronargs <> 0 OR old.proretset OR old.prorettype <> 'bigint'::regtype THEN
        RAISE EXCEPTION 'function % is not a function without arguments that returns bigint', legacy USING
            ERRCODE = 'wrong_object_type',
            HINT = snowflake_internal.adopt_attach_text(legacy, shard, NULL,
                                                        coalesce(epoch_ms, snowflake_internal.default_epoch()), NULL);
    END IF;
    RETURN true;
END;
$$;

-- Keeps others from changing the function, its sequence and its tables, until the transaction ends; false: the function is native already.
CREATE FUNCTION snowflake_internal.adopt_claim(legacy regprocedure, shard integer, seq regclass, epoch_ms bigint)
    RETURNS boolean LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    old CONSTANT text := (pg_identify_object('pg_proc'::regclass, legacy, 0)).identity;
    col record;
BEGIN
    PERFORM snowflake_internal.claim_shard(shard, n.nspname)
    FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace WHERE p.oid = legacy;
    -- Functions have no lock, but a row that this transaction wrote cannot be changed by others. The function
    -- becomes VOLATILE in the end anyway.
    EXECUTE format('ALTER FUNCTION %s VOLATILE', old);
    -- This may have waited for a session that adopted the function.
    IF NOT snowflake_internal.adopt_check(legacy, shard, seq, epoch_ms) THEN
        RETURN false;
    END IF;
    -- Tables are locked before sequences.
    FOR col IN SELECT * FROM snowflake_internal.adopt_columns(legacy) AS c WHERE c.obstacle IS NULL LOOP
        EXECUTE format('LOCK TABLE ONLY %s IN ACCESS SHARE MODE', col.tbl);
    END LOOP;
    IF (pg_identify_object('pg_proc'::regclass, legacy, 0)).identity IS DISTINCT FROM old THEN
        RAISE EXCEPTION 'function % was renamed or moved meanwhile', old USING
            ERRCODE = 'object_not_in_prerequisite_state',
            HINT = 'Look for its new name, and try again.';
    END IF;
    IF seq IS NOT NULL THEN
        PERFORM snowflake_internal.adopt_lock(legacy, shard, seq, true);
    END IF;
    RETURN true;
END;
$$;

-- Bigint columns whose DEFAULT calls a function, and why their largest ID is not looked up (NULL: it is).
-- A role that has made a table whose DEFAULT calls the function must not decide an adoption: neither by its
-- rows, policies and locks, nor by code that a query of the table runs. So only tables of the function's
-- owner and of the caller are looked at.
CREATE FUNCTION snowflake_internal.adopt_columns(
        legacy regprocedure, OUT tbl regclass, OUT attnum integer, OUT column_name name, OUT is_own boolean,
        OUT obstacle text)
    RETURNS SETOF record LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
SELECT c.oid, a.attnum, a.attname, o.is_own,
       CASE WHEN NOT o.is_own THEN format('the table belongs to %s', c.relowner::regrole)
            -- the privileges that LOCK TABLE needs
            WHEN NOT (has_schema_privilege(c.relnamespace, 'USAGE') AND has_table_privilege(c.oid, 'SELECT'))
            THEN format('%I may not read it', current_user)
            WHEN NOT EXISTS (SELECT FROM pg_index AS i JOIN pg_class AS x ON x.oid = i.indexrelid
                             WHERE i.indrelid = c.oid AND i.indkey[0] = a.attnum AND i.indpred IS NULL AND i.indisvalid
                               AND x.relam = (SELECT m.oid FROM pg_am AS m WHERE m.amname = 'btree'))
            THEN 'no index begins with it' END
FROM pg_depend AS d
JOIN pg_attrdef AS f ON f.oid = d.objid
JOIN pg_attribute AS a ON a.attrelid = f.adrelid AND a.attnum = f.adnum
JOIN pg_class AS c ON c.oid = a.attrelid
JOIN pg_type AS t ON t.oid = a.atttypid AND t.typoutput = 'int8out'::regproc -- bigint, or a domain over it
JOIN pg_proc AS p ON p.oid = d.refobjid
CROSS JOIN LATERAL (SELECT c.relowner IN (p.proowner, quote_ident(current_user)::regrole) AS is_own) AS o
WHERE d.classid = 'pg_attrdef'::regclass AND d.refclassid = 'pg_proc'::regclass AND d.refobjid = $1
  AND NOT pg_is_other_temp_schema(c.relnamespace) -- nobody else can look into that
ORDER BY c.oid, a.attnum
$$;

-- Puts the sequence past the observed IDs, and the native function in the place of the old one.
CREATE FUNCTION snowflake_internal.adopt_replace(
        legacy regprocedure, shard integer, seq regclass, epoch_ms bigint, calls snowflake_internal.observation[])
        RETURNS void LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    old record;
BEGIN
    RAISE NOTICE 'function %: shard %, sequence %, epoch_ms %', legacy, shard, seq, epoch_ms USING
        DETAIL = 'It was called more than 20 times before that. If it writes anything, it did so each time.';
    PERFORM snowflake_internal.advance(seq, max(c.id), epoch_ms) FROM unnest(calls) AS c;
    PERFORM snowflake_internal.adopt_pass_columns(legacy, seq, epoch_ms);

    -- CREATE OR REPLACE keeps the OID, the owner, the privileges, and the dependents. The body
    -- is bound to the sequence itself, so a search_path of the function's own is not needed any more.
    SELECT n.nspname, p.proname, p.prosecdef INTO old
    FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace WHERE p.oid = legacy;
    EXECUTE format('CREATE OR REPLACE FUNCTION %I.%I(%s) RETURNS bigint '
                   'LANGUAGE sql VOLATILE PARALLEL UNSAFE %s RETURN %s',
                   old.nspname, old.proname, pg_get_function_arguments(legacy),
                   CASE WHEN old.prosecdef THEN 'SECURITY DEFINER' END,
                   snowflake_internal.call_text(shard, seq, epoch_ms));
    -- Schemas can be renamed all the same, and others be given their names.
    IF NOT EXISTS (SELECT FROM snowflake_internal.call_of('pg_proc'::regclass::oid, legacy::oid, 0) AS k
                   WHERE k.seq = $3) THEN
        RAISE EXCEPTION 'the schema of function % or sequence % was renamed meanwhile', legacy, seq USING
            ERRCODE = 'object_not_in_prerequisite_state',
            HINT = format('Try again: SELECT %ssnowflake_adopt(%L, %s);', snowflake_internal.prefix(), legacy, shard);
    END IF;
    -- If no native ID can be made now, this is the error, and not the first INSERT.
    EXECUTE format('SELECT %I.%I()', old.nspname, old.proname);
END;
$$;

-- Puts a sequence past the IDs ahead of the clock in the columns whose DEFAULT calls a function.
-- The new IDs are above the old ones as far as the clock is right. If it was not, and an index shows the
-- largest ID, the sequence is moved past that. The columns that were not looked at are told.
CREATE FUNCTION snowflake_internal.adopt_pass_columns(legacy regprocedure, seq regclass, epoch_ms bigint) RETURNS void
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    more CONSTANT text := CASE WHEN epoch_ms = snowflake_internal.default_epoch() THEN ''
                               ELSE format(', %s', epoch_ms) END;
    col record;
    newest bigint;
BEGIN
    FOR col IN SELECT * FROM snowflake_internal.adopt_columns(legacy) LOOP
        IF col.obstacle IS NOT NULL THEN
            RAISE NOTICE 'column % of table % was not looked at for IDs ahead of the clock: %',
                quote_ident(col.column_name), col.tbl, col.obstacle USING
                HINT = CASE WHEN col.is_own
                            THEN format('SELECT %ssnowflake_advance(%L, max(%I)%s) FROM %s;',
                                        snowflake_internal.prefix(), seq, col.column_name, more, col.tbl)
                            -- In a query by another role code of the table's owner would run with that role's rights.
                            ELSE format('Ask that role for max(%I). If new IDs must be above it: '
                                        'SELECT %ssnowflake_advance(%L, ...%s);',
                                        col.column_name, snowflake_internal.prefix(), seq, more) END;
            CONTINUE;
        END IF;
        SELECT e.largest INTO newest FROM snowflake_internal.column_end(col.tbl, col.attnum, 9223372036854775807) AS e;
        IF newest >= snowflake_internal.min_id(date_trunc('milliseconds', clock_timestamp()), epoch_ms) THEN
            -- A role that may only write into the table must not put the sequence out of use.
            PERFORM snowflake_internal.require_reach(col.tbl, col.column_name, newest, epoch_ms);
            PERFORM snowflake_internal.advance(seq, newest, epoch_ms);
        END IF;
    END LOOP;
END;
$$;
-- Steps of snowflake_adopt(): the sequence that the old function draws from.

-- The one sequence that two calls of a function have drawn from, locked.
CREATE FUNCTION snowflake_internal.adopt_sequence(
        legacy regprocedure, shard integer, seq regclass, calls snowflake_internal.observation[]) RETURNS regclass
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    found regclass[] := ARRAY(SELECT unnest(calls[1].seqs) INTERSECT SELECT unnest(calls[2].seqs) ORDER BY 1);
    schema CONSTANT regnamespace := (SELECT p.pronamespace FROM pg_proc AS p WHERE p.oid = legacy);
BEGIN
    IF calls[2].last_value IS NULL OR calls[1].last_value = calls[2].last_value THEN
        RAISE EXCEPTION 'function % draws from no sequence', legacy USING
            ERRCODE = 'invalid_function_definition',
            DETAIL = format('lastval() was %s after one call, and %s after the next.',
                            coalesce(calls[1].last_value::text, 'not defined'),
                            coalesce(calls[2].last_value::text, 'not defined')),
            HINT = snowflake_internal.adopt_attach_text(legacy, shard, NULL, snowflake_internal.default_epoch(), calls);
    ELSIF cardinality(found) = 0 AND seq IS NOT NULL THEN
        RAISE EXCEPTION 'function % does not draw from sequence %', legacy, seq USING
            ERRCODE = 'invalid_function_definition',
            DETAIL = format('lastval() was %s after a call, and is not the currval() of this sequence.', calls[2].last_value);
    ELSIF cardinality(found) = 0 THEN
        RAISE EXCEPTION 'function % draws from no sequence of schema %', legacy, schema USING
            ERRCODE = 'invalid_function_definition',
            DETAIL = format('lastval() was %s after a call, and is the currval() of none of them.', calls[2].last_value),
            HINT = format('Give the sequence by name: SELECT %ssnowflake_adopt(%L, %s, seq => ...);', snowflake_internal.prefix(), legacy, shard);
    ELSIF cardinality(found) > 1 THEN
        RAISE EXCEPTION 'function % draws from several sequences', legacy USING
            ERRCODE = 'invalid_function_definition',
            DETAIL = format('After two calls lastval() was the currval() of %s.', array_to_string(found, ', '));
    END IF;
    IF seq IS NULL THEN
        PERFORM snowflake_internal.adopt_lock(legacy, shard, found[1], false);
    END IF;
    RETURN found[1];
END;
$$;

-- lastval(), and which sequences have it as their currval(): of the schema of a function, or the given one alone.
CREATE FUNCTION snowflake_internal.adopt_drawn(legacy regprocedure, seq regclass, OUT last_value bigint, OUT seqs oid[])
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    candidate regclass;
BEGIN
    last_value := lastval();
    FOR candidate IN
        SELECT c.oid
        FROM pg_class AS c
        WHERE c.relkind = 'S'
          AND CASE WHEN seq IS NOT NULL THEN c.oid = seq
                   ELSE c.relnamespace = (SELECT p.pronamespace FROM pg_proc AS p WHERE p.oid = legacy)
                        -- currval() would lock each sequence of the schema; one that was drawn from is locked.
                        AND EXISTS (SELECT FROM pg_locks AS l
                                    WHERE l.locktype = 'relation' AND l.relation = c.oid
                                      AND l.pid = pg_backend_pid()) END
    LOOP
        BEGIN
            IF currval(candidate) = last_value THEN
                seqs := seqs || candidate::oid;
            END IF;
        EXCEPTION WHEN object_not_in_prerequisite_state OR insufficient_privilege THEN
            NULL; -- not drawn from in this session, or not by the caller
        END;
    END LOOP;
EXCEPTION WHEN object_not_in_prerequisite_state OR insufficient_privilege THEN
    NULL; -- nothing was drawn
END;
$$;

-- Makes others who draw from a sequence wait until the transaction ends. Refuses one that native IDs cannot be drawn
-- from, and one that others use, because they get numbers above 2^50 after the adoption; a NOTICE if they are bigint
-- columns and the sequence was given by name. A PL/pgSQL body, or an SQL body in text, does not show which sequences it
-- uses. Any role can name the sequence in a DEFAULT of its own: it decides nothing if its owner may not draw.
CREATE FUNCTION snowflake_internal.adopt_lock(legacy regprocedure, shard integer, seq regclass, is_given boolean)
    RETURNS void LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    shape CONSTANT pg_sequence := (SELECT s FROM pg_sequence AS s WHERE s.seqrelid = seq);
    -- It changes the sequence for the old function, too: that must not make IDs after that.
    hint CONSTANT text := concat(CASE WHEN shape.seqcycle THEN
            E'-- If the function has nextval() without % 1024, write that first: the sequence will not cycle any more.\n' END,
        format('BEGIN; ALTER SEQUENCE %s AS bigint INCREMENT BY 1 NO MAXVALUE; SELECT %ssnowflake_adopt(%L, %s%s); COMMIT;', seq,
               snowflake_internal.prefix(), legacy, shard, CASE WHEN is_given THEN format(', seq => %L', seq) END));
    listed text;
    all_bigint boolean;
    barred text;
BEGIN
    PERFORM snowflake_internal.require_sequence(seq, hint);
    SELECT string_agg(u.description, ', ' ORDER BY u.description COLLATE "C") FILTER (WHERE u.may_draw),
           bool_and(u.is_bigint) FILTER (WHERE u.may_draw),
           string_agg(u.description, ', ' ORDER BY u.description COLLATE "C") FILTER (WHERE NOT u.may_draw)
    INTO listed, all_bigint, barred FROM snowflake_internal.adopt_users(legacy, seq) AS u;
    IF barred IS NOT NULL THEN
        RAISE NOTICE 'sequence % is named by objects whose owners may not draw from it: %', seq, barred;
    END IF;
    IF all_bigint AND is_given THEN
        RAISE NOTICE 'sequence % gives numbers above 2^50 from now on, also to: %', seq, listed;
    ELSIF listed IS NOT NULL THEN
        RAISE EXCEPTION 'sequence % is used by others than function %', seq, legacy USING
            ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = format('Numbers above 2^50 would go to: %s.', listed),
            HINT = concat('Give each of them a sequence of its own.', CASE WHEN all_bigint THEN
                format(' Or accept such numbers there: SELECT %ssnowflake_adopt(%L, %s, seq => %L);',
                       snowflake_internal.prefix(), legacy, shard, seq) END);
    END IF;
    -- ALTER SEQUENCE takes ShareRowExclusiveLock, for which nextval() waits. This one changes nothing.
    EXECUTE format('ALTER SEQUENCE %s CACHE %s', seq, shape.seqcache);
END;
$$;

-- Other users of the sequence of a function, but for native IDs; whether it is a bigint column, and whether its owner may draw.
CREATE FUNCTION snowflake_internal.adopt_users(
        legacy regprocedure, seq regclass, OUT description text, OUT is_bigint boolean, OUT may_draw boolean)
        RETURNS SETOF record LANGUAGE sql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
SELECT pg_describe_object(u.classid, u.objid, u.objsubid), coalesce(t.typoutput = 'int8out'::regproc, false),
       coalesce(has_sequence_privilege(coalesce(c.relowner, p.proowner, y.typowner), $2, 'USAGE, UPDATE'), true)
FROM (SELECT d.classid, d.objid, d.objsubid, f.adrelid AS tbl, f.adnum::integer AS attnum
      FROM pg_depend AS d LEFT JOIN pg_attrdef AS f ON d.classid = 'pg_attrdef'::regclass AND f.oid = d.objid
      WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = $2 AND d.deptype = 'n'
        AND d.refobjsubid = 0 -- not a query that reads its columns
        AND (d.classid, d.objid) <> ('pg_proc'::regclass, $1::oid)
      UNION ALL
      -- an identity column: its sequence depends on it
      SELECT d.refclassid, d.refobjid, d.refobjsubid, d.refobjid, d.refobjsubid
      FROM pg_depend AS d
      WHERE d.classid = 'pg_class'::regclass AND d.objid = $2 AND d.refclassid = 'pg_class'::regclass
          AND d.deptype = 'i') AS u
LEFT JOIN pg_attribute AS a ON a.attrelid = u.tbl AND a.attnum = u.attnum
LEFT JOIN pg_type AS t ON t.oid = a.atttypid
-- the owner of the table, view, function or domain
LEFT JOIN pg_rewrite AS w ON u.classid = 'pg_rewrite'::regclass AND w.oid = u.objid
LEFT JOIN pg_class AS c ON c.oid = coalesce(u.tbl, w.ev_class)
LEFT JOIN pg_proc AS p ON u.classid = 'pg_proc'::regclass AND p.oid = u.objid
LEFT JOIN pg_type AS y ON u.classid = 'pg_type'::regclass AND y.oid = u.objid
WHERE NOT EXISTS (SELECT FROM snowflake_internal.call_of(
                      CASE WHEN u.tbl IS NULL THEN u.classid ELSE 'pg_class'::regclass::oid END,
                      coalesce(u.tbl, u.objid), coalesce(u.attnum, 0)) AS k WHERE k.seq = $2)
  AND NOT snowflake_internal.asks_settled(u.classid, u.objid)
$$;

-- Sets bits 10 to 22 of the value of a sequence; returns the value to go on with after that. With 8 in the sequence, a
-- counter of 12 bits or one without a mask looks like one of 10 bits. So the bits of the value that would fall on the
-- shard field are set for one call. 2^23 fits into the integer variable that some functions have for it.
CREATE FUNCTION snowflake_internal.adopt_jump(seq regclass) RETURNS bigint
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    present CONSTANT bigint := (SELECT pg_sequence_last_value(s.seqrelid) FROM pg_sequence AS s WHERE s.seqrelid = seq);
    far CONSTANT bigint := present | (8191 << 10);
BEGIN
    -- If the present value has all these bits, it would be drawn again.
    -- Unlike setval(), RESTART is undone by a rollback.
    EXECUTE format('ALTER SEQUENCE %s RESTART WITH %s', seq, CASE WHEN far > present THEN far ELSE far + (1 << 23) END);
    RETURN present + 1;
END;
$$;
-- Steps of snowflake_adopt(): conclusions from the calls of the old function.

-- Calls a function with the search_path of the caller, and returns the observation.
CREATE FUNCTION snowflake_internal.adopt_call(legacy regprocedure, seq regclass) RETURNS snowflake_internal.observation
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
AS $$
DECLARE
    named CONSTANT pg_catalog.text := -- with its schema
        (pg_catalog.pg_identify_object('pg_catalog.pg_proc'::pg_catalog.regclass, legacy, 0)).identity;
    seen snowflake_internal.observation;
BEGIN
    EXECUTE pg_catalog.concat('SELECT pg_catalog.clock_timestamp(), ', named, ', pg_catalog.clock_timestamp()')
        INTO seen.before, seen.id, seen.after;
    SELECT d.last_value, d.seqs INTO seen.last_value, seen.seqs FROM snowflake_internal.adopt_drawn(legacy, seq) AS d;
    RETURN seen;
END;
$$;

-- The epochs that fit all calls: of a function that rounds the clock down, then of one that rounds it to the nearest.
-- Before a call the clock was in millisecond b, after it in a. If the function rounds the clock down, its epoch
-- is in b - (id >> 23) .. a - (id >> 23). If it rounds to the nearest, b and a are those of half a millisecond
-- later. The epoch is in the intersection of all calls; a function that does neither leaves none. The
-- microsecond on both sides is for functions that compute with float8, which is off by a fraction of it.
CREATE FUNCTION snowflake_internal.adopt_epochs(
        calls snowflake_internal.observation[], OUT lowest bigint, OUT highest bigint) RETURNS SETOF record
    LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
SELECT e.lowest, e.highest
FROM (SELECT r.later_us,
             max(((extract(epoch FROM c.before) * 1000000)::bigint - 1 + r.later_us) / 1000 - (c.id >> 23)) AS lowest,
             min(((extract(epoch FROM c.after) * 1000000)::bigint + 1 + r.later_us) / 1000 - (c.id >> 23)) AS highest
      FROM unnest($1) AS c, (VALUES (0), (500)) AS r(later_us)
      GROUP BY r.later_us) AS e
WHERE e.lowest <= e.highest
ORDER BY e.later_us
$$;

-- Whether there are calls in less than 20 milliseconds, or more than one epoch fits; never after 200 calls.
CREATE FUNCTION snowflake_internal.adopt_needs_more(calls snowflake_internal.observation[]) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
SELECT cardinality($1) < 200
       AND ((SELECT count(DISTINCT date_trunc('milliseconds', c.before)) < 20 FROM unnest($1) AS c)
            OR (SELECT min(e.lowest) < max(e.highest) FROM snowflake_internal.adopt_epochs($1) AS e))
$$;

-- The epoch of a function; refuses one whose IDs are not of the layout, the shard and the sequence.
CREATE FUNCTION snowflake_internal.adopt_judge(
        legacy regprocedure, shard integer, seq regclass, epoch_ms bigint, calls snowflake_internal.observation[])
        RETURNS bigint LANGUAGE plpgsql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    negative CONSTANT bigint := (SELECT min(c.id) FROM unnest(calls) AS c WHERE c.id < 0);
    instead CONSTANT text := snowflake_internal.adopt_attach_text(
        legacy, shard, seq, coalesce(epoch_ms, snowflake_internal.default_epoch()), calls);
    found_ms bigint;
BEGIN
    IF EXISTS (SELECT FROM unnest(calls) AS c WHERE c.id IS NULL) THEN
        RAISE EXCEPTION 'function % returned NULL', legacy USING ERRCODE = 'invalid_function_definition';
    ELSIF EXISTS (SELECT FROM unnest(calls) AS c WHERE (seq = ANY (c.seqs)) IS NOT TRUE)
          OR (SELECT count(DISTINCT c.last_value) FROM unnest(calls) AS c) < cardinality(calls) THEN
        RAISE EXCEPTION 'function % does not draw from sequence % in each call', legacy, seq USING
            ERRCODE = 'invalid_function_definition',
            DETAIL = 'lastval() must be another number after each call, and the currval() of this sequence.';
    END IF;
    -- Not the last call: a counter that spills over the shard field can change the time, too.
    found_ms := snowflake_internal.adopt_judge_time(legacy, calls[:cardinality(calls) - 1], instead);
    IF negative IS NOT NULL THEN
        RAISE EXCEPTION 'function %: its IDs are negative', legacy USING
            ERRCODE = 'datetime_field_overflow',
            DETAIL = format('It returned %s. Either its epoch_ms is %s, and its time has overflowed, or it is %s, '
                            'which is in the future.',
                            negative, found_ms - (1::bigint << 41), found_ms),
            HINT = instead;
    END IF;
    PERFORM snowflake_internal.adopt_judge_fields(
        legacy, shard, calls, snowflake_internal.adopt_attach_text(legacy, shard, seq, found_ms, calls));
    IF epoch_ms <> found_ms THEN
        RAISE EXCEPTION 'function %: the epoch is %, not %', legacy, found_ms, epoch_ms USING
            ERRCODE = 'invalid_function_definition',
            DETAIL = format('It is the one that fits the clock in each of %s calls.', cardinality(calls) - 1);
    END IF;
    RETURN found_ms;
END;
$$;

-- The epoch that the calls of a function show; an error if it is none, or more than one.
CREATE FUNCTION snowflake_internal.adopt_judge_time(
        legacy regprocedure, calls snowflake_internal.observation[], instead text) RETURNS bigint
    LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    epochs record;
    first_call CONSTANT snowflake_internal.observation := calls[1];
    last_call CONSTANT snowflake_internal.observation := calls[cardinality(calls)];
BEGIN
    -- If both kinds of rounding fit, as with slow calls, it is taken for the published one.
    SELECT * INTO epochs FROM snowflake_internal.adopt_epochs(calls) LIMIT 1;
    -- All above the counter: with its time at a lower bit, id >> 23 may not move for a while.
    IF (SELECT min(c.id >> 10) = max(c.id >> 10) FROM unnest(calls) AS c) THEN
        RAISE EXCEPTION 'function %: the time in its IDs stands still', legacy USING
            ERRCODE = 'invalid_function_definition',
            DETAIL = format('In %s calls the clock moved by %s ms, and id >> 23 was %s in all of them.',
                            cardinality(calls), round(extract(epoch FROM last_call.before - first_call.before) * 1000),
                            first_call.id >> 23),
            HINT = 'If it calls now() or statement_timestamp(), write clock_timestamp() there, and adopt it then.';
    ELSIF epochs IS NULL THEN
        RAISE EXCEPTION 'function %: the time field is not milliseconds at bit 23', legacy USING
            ERRCODE = 'invalid_function_definition',
            DETAIL = format('From the first of %s calls to the last the clock moved by %s ms, and id >> 23 by %s, '
                            'from %s to %s. No epoch fits all calls.',
                            cardinality(calls), round(extract(epoch FROM last_call.before - first_call.before) * 1000),
                            (last_call.id >> 23) - (first_call.id >> 23), first_call.id >> 23, last_call.id >> 23),
            HINT = instead;
    ELSIF epochs.lowest < epochs.highest THEN
        RAISE EXCEPTION 'function %: the epoch is not seen to the millisecond', legacy USING
            ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = format('After %s calls it is between %s and %s. The quickest call took %s ms.', cardinality(calls),
                            epochs.lowest, epochs.highest,
                            (SELECT extract(epoch FROM min(c.after - c.before)) * 1000 FROM unnest(calls) AS c)),
            HINT = 'Try again when the server is less busy.';
    END IF;
    RETURN epochs.lowest;
END;
$$;

-- Refuses a function whose IDs carry another shard or another counter than lastval() % 1024.
CREATE FUNCTION snowflake_internal.adopt_judge_fields(
        legacy regprocedure, shard integer, calls snowflake_internal.observation[], instead text) RETURNS void
    LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    first_shard CONSTANT bigint := (calls[1].id >> 10) & 8191;
    seen snowflake_internal.observation := calls[1];
    detail text;
BEGIN
    -- All 23 bits: a counter that is wider than its field changes the shard.
    SELECT c.* INTO seen FROM unnest(calls) AS c
    ORDER BY (c.id & 8388607) <> ((first_shard << 10) | (c.last_value & 1023)) DESC, c.before LIMIT 1;
    detail := format('With lastval() = %s it returned %s: shard %s, counter %s.',
                     seen.last_value, seen.id, (seen.id >> 10) & 8191, seen.id & 1023);
    IF (seen.id & 8388607) <> ((first_shard << 10) | (seen.last_value & 1023)) THEN
        RAISE EXCEPTION 'function %: the counter is not lastval() %% 1024', legacy USING
            ERRCODE = 'invalid_function_definition',
            DETAIL = detail,
            HINT = concat_ws(E'\n',
                             'If its shard is shifted by 10 bits, write nextval(...) % 1024 for the counter, '
                             'and adopt it then.', instead);
    ELSIF first_shard <> shard THEN
        RAISE EXCEPTION 'function %: IDs carry shard %, not %', legacy, first_shard, shard USING
            ERRCODE = 'invalid_function_definition',
            DETAIL = detail,
            HINT = format('If that is its shard: SELECT %ssnowflake_adopt(%L, %s);', snowflake_internal.prefix(), legacy, first_shard);
    END IF;
END;
$$;

-- The remedy for a function that cannot be adopted: the statements that attach the columns whose DEFAULT calls it.
CREATE FUNCTION snowflake_internal.adopt_attach_text(
        legacy regprocedure, shard integer, seq regclass, epoch_ms bigint, calls snowflake_internal.observation[])
        RETURNS text
    LANGUAGE plpgsql STABLE CALLED ON NULL INPUT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    statements text;
BEGIN
    -- Not the last call: see adopt_judge().
    IF (SELECT max(c.id >> 23) FROM unnest(calls[:cardinality(calls) - 1]) AS c)
       > floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - epoch_ms THEN
        RETURN 'Its IDs are larger than native ones of today: a column of them cannot go on with native IDs.';
    END IF;
    -- Two schemas cannot have one shard: snowflake_attach() asks for it then.
    SELECT string_agg(format('SELECT %ssnowflake_attach(%s);', snowflake_internal.prefix(), snowflake_internal.attach_arguments(
                          c.tbl, c.attname, CASE WHEN c.is_one_schema THEN shard END, seq, epoch_ms)),
                      E'\n' ORDER BY c.tbl::text COLLATE "C", c.attnum) INTO statements
    FROM (SELECT t.oid::regclass AS tbl, a.attname, a.attnum,
                 min(t.relnamespace) OVER () = max(t.relnamespace) OVER () AS is_one_schema
          FROM pg_depend AS d
          JOIN pg_attrdef AS f ON f.oid = d.objid
          JOIN pg_attribute AS a ON a.attrelid = f.adrelid AND a.attnum = f.adnum AND a.attinhcount = 0
          JOIN pg_class AS t ON t.oid = a.attrelid AND t.relpersistence <> 't'
          WHERE d.classid = 'pg_attrdef'::regclass AND d.refclassid = 'pg_proc'::regclass AND d.refobjid = legacy) AS c;
    RETURN concat_ws(E'\n',
        'A column whose DEFAULT calls it can be attached: its IDs stay, and new ones are above them. '
        'If its IDs are milliseconds << 23 of another epoch, give that as epoch_ms.',
        coalesce(statements, format('SELECT %ssnowflake_attach(table, column, %s);', snowflake_internal.prefix(),
                                    concat_ws(', ', 'shard => ' || shard, 'seq => ' || quote_literal(seq::text),
                                              'epoch_ms => ' || epoch_ms))));
END;
$$;
-- The dependents of an object, and the statement that drops one. The catalogues are read with a search_path of
-- pg_catalog only, so that every name is written with its schema.

-- The objects that depend on an object or on one of its columns (0: on any part); the view for its rule.
CREATE FUNCTION snowflake_internal.dependents(classid oid, objid oid, objsubid integer)
    RETURNS TABLE (classid oid, objid oid)
    LANGUAGE sql STABLE STRICT PARALLEL SAFE ROWS 3 SET search_path = pg_catalog, pg_temp AS $$
-- A view depends on its tables through its rule _RETURN. A partition's copy of a trigger is no object of its own.
SELECT DISTINCT v.classid, v.objid
FROM pg_depend AS d
LEFT JOIN pg_rewrite AS w ON d.classid = 'pg_rewrite'::regclass AND w.oid = d.objid AND w.rulename = '_RETURN'
LEFT JOIN pg_class AS c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid
LEFT JOIN pg_trigger AS t ON d.classid = 'pg_trigger'::regclass AND t.oid = d.objid
CROSS JOIN LATERAL (SELECT CASE WHEN w.oid IS NULL THEN d.classid ELSE 'pg_class'::regclass::oid END,
                           coalesce(w.ev_class, d.objid)) AS v(classid, objid)
WHERE d.refclassid = $1 AND d.refobjid = $2 AND ($3 = 0 OR d.refobjsubid = $3)
  AND (v.classid, v.objid) <> ($1, $2)
  AND c.relkind IS DISTINCT FROM 't' AND coalesce(t.tgparentid, 0) = 0
$$;

-- The statement that drops an object; empty for a part of an object, which is dropped with it; NULL if it must not be dropped.
CREATE FUNCTION snowflake_internal.drop_text(classid oid, objid oid) RETURNS text
    LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
SELECT CASE
    WHEN o.type = 'publication relation' THEN
        (SELECT format('ALTER PUBLICATION %I DROP TABLE ONLY %s;', p.pubname, r.prrelid::regclass)
         FROM pg_publication_rel AS r JOIN pg_publication AS p ON p.oid = r.prpubid WHERE r.oid = $2)
    WHEN o.type IN ('view', 'materialized view', 'index', 'rule', 'trigger', 'policy', 'function', 'procedure') THEN
        format('DROP %s %s;', upper(o.type), o.identity)
    -- The row type of a view, the constraint of a constraint trigger.
    WHEN EXISTS (SELECT FROM pg_type AS t JOIN pg_class AS c ON c.oid = t.typrelid AND c.relkind IN ('v', 'm')
                 WHERE $1 = 'pg_type'::regclass AND $2 IN (t.oid, t.typarray)
                 UNION ALL
                 SELECT FROM pg_constraint AS c
                 WHERE $1 = 'pg_constraint'::regclass AND $2 = c.oid AND c.contype = 't') THEN ''
    END
FROM pg_identify_object($1, $2, 0) AS o
$$;
-- Giving a column native IDs: a sequence, NOT NULL and a DEFAULT, in place of its former ones.
--
-- snowflake_attach() looks at everything, locks, looks again, and only then changes anything. So each error comes before
-- a row is written. Its steps are the functions attach_...(). old_ is the state before, new_ the state after.

-- A column that snowflake_attach() changes: the column itself, that of a child or a partition, or one that refers to
-- it. All of them are found once, by attach_scope(), and given to each step.
CREATE TYPE snowflake_internal.attach_member AS (
    root regclass,       -- the top of its inheritance tree: ALTER TABLE changes the tree from there
    tbl regclass,
    attnum smallint,
    column_name name,
    is_attached boolean, -- the column itself, in its table and in all below it: gets the DEFAULT
    is_narrow boolean    -- attached, or referring to one that is, and too small for an ID: becomes bigint
);

-- snowflake_attach('schema.table' [, 'column'] [, shard => 0..8191] [, seq => 'schema.sequence'] [, epoch_ms => n]
--                  [, validate => false])
--
-- validate => false: foreign keys are NOT VALID afterwards, and a NOTICE has the statements that validate them.
--
--   42501  not the owner of the table, or of one that refers to it; no right to make or to use the sequence
--   42809  a view, a foreign table, a system catalogue, a partition, an inherited column; seq is no sequence
--   42703, 42804, 428C9   no such column; not bigint, integer or smallint; a generated column
--   55000  no shard; a foreign key to another table's ID; attached with another shard, sequence or epoch; a sequence
--          that others draw from, or that cannot be used; a DEFAULT whose epoch is not known; something in the
--          way, listed with the statements that drop it, and how to save it before; a value so large that new IDs
--          would not be above it within snowflake.max_drift
--   42710, 22003          the shard is another schema's; is none
--   22008, 2200H          the epoch is in the future; is over
--   23502, 25001, 25006   NULLs in the column; isolation above READ COMMITTED; read-only
--   55P03                 others held a table until lock_timeout after the call began: all tables together have that time
--
-- NOTICEs tell the progress: the size before each rewriting, the time after it.
CREATE FUNCTION snowflake_attach(
        tbl regclass, column_name name DEFAULT 'id', shard integer DEFAULT NULL,
        seq regclass DEFAULT NULL, epoch_ms bigint DEFAULT NULL, validate boolean DEFAULT true) RETURNS void
    LANGUAGE plpgsql VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    started CONSTANT timestamptz := clock_timestamp();
    col pg_attribute;
    scope snowflake_internal.attach_member[];
    arguments text;  -- of this call, for hints
    new_call record; -- shard, epoch_ms, and the schema
    new_seq regclass;
    claimed record;
    largest bigint;
BEGIN
    -- Another session may attach, move or rename the table, or give it a foreign key or a view, while this one
    -- waits for a lock. So all is looked at again until nothing is left to wait for.
    LOOP
        col := snowflake_internal.attach_column(tbl, column_name);
        arguments := snowflake_internal.attach_arguments(tbl, column_name, shard, seq, epoch_ms)
                     || CASE WHEN validate IS FALSE THEN ', validate => false' ELSE '' END;
        PERFORM snowflake_internal.require_read_committed('snowflake_attach'::text, arguments);
        IF snowflake_internal.attach_is_done(col, shard, seq, epoch_ms) THEN
            RETURN;
        END IF;
        PERFORM snowflake_internal.attach_require_own_ids(col, shard, epoch_ms);
        scope := snowflake_internal.attach_scope(tbl, col.attnum);
        PERFORM snowflake_internal.attach_require_owner(scope);
        SELECT a.shard, a.epoch_ms, a.schema INTO new_call
        FROM snowflake_internal.attach_shard(col, shard, epoch_ms) AS a;
        -- Lock order: the shard's number, then the tables. A session that holds a table waits only for tables.
        -- A number that is in use is an error before any hint names objects to drop.
        IF claimed IS DISTINCT FROM new_call THEN
            PERFORM snowflake_internal.claim_shard(new_call.shard, new_call.schema);
            claimed := new_call;
            CONTINUE;
        END IF;
        IF epoch_ms IS NULL THEN
            PERFORM snowflake_internal.attach_require_known_epoch(scope, new_call.shard, new_call.epoch_ms, arguments);
        END IF;
        new_seq := snowflake_internal.attach_sequence(scope, new_call.shard, seq, new_call.epoch_ms);
        PERFORM snowflake_internal.attach_require_clear(scope, seq, arguments);
        EXIT WHEN NOT snowflake_internal.attach_lock(scope, started);
    END LOOP;

    largest := snowflake_internal.attach_largest(scope);
    PERFORM snowflake_internal.require_reach(tbl, column_name, largest, new_call.epoch_ms);

    PERFORM snowflake_internal.attach_tell_broken(scope);
    PERFORM snowflake_internal.attach_tell_readers(scope);
    PERFORM snowflake_internal.attach_tell_old(scope, new_seq);
    new_seq := snowflake_internal.attach_prepare_sequence(scope, new_seq, is_given => seq IS NOT NULL);
    -- Serial numbers, read as IDs, lie long before now. This is for a clock that steps back, and for IDs of
    -- a moment ago. A negative number is below every ID.
    IF largest >= 0 THEN
        PERFORM snowflake_internal.advance(new_seq, largest, new_call.epoch_ms);
    END IF;
    PERFORM snowflake_internal.attach_alter(
        scope, snowflake_internal.call_text(new_call.shard, new_seq, new_call.epoch_ms), validate);
END;
$$;
COMMENT ON FUNCTION snowflake_attach(regclass, name, integer, regclass, bigint, boolean) IS
    'gives a column IDs of a shard, the schema''s by default: a sequence of its own or seq, '
    'NOT NULL and DEFAULT snowflake_next_id(); serial, identity and integer columns are converted with their rows, '
    'and integer columns that refer to it by a foreign key with it; '
    'with validate => false foreign keys are left NOT VALID';

-- The arguments of a call of snowflake_attach() as SQL text, for hints; NULL: not given.
CREATE FUNCTION snowflake_internal.attach_arguments(
        tbl regclass, column_name name, shard integer, seq regclass, epoch_ms bigint) RETURNS text
    LANGUAGE sql STABLE CALLED ON NULL INPUT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
SELECT concat_ws(', ', quote_literal(tbl::text), quote_literal(column_name), 'shard => ' || shard,
                 'seq => ' || quote_literal(seq::text), 'epoch_ms => ' || epoch_ms)
$$;

-- Whether a column is attached as asked for, with a NOTICE if it is; an error if it is attached otherwise.
CREATE FUNCTION snowflake_internal.attach_is_done(col pg_catalog.pg_attribute, shard integer, seq regclass,
                                                  epoch_ms bigint)
    RETURNS boolean
    LANGUAGE plpgsql STABLE CALLED ON NULL INPUT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    described CONSTANT text := format('column %I of table %s', col.attname, col.attrelid::regclass);
    old record; -- the native call that the column has
    old_text text;
BEGIN
    SELECT k.* INTO old
    FROM snowflake_internal.call_of('pg_class'::regclass::oid, col.attrelid, col.attnum::integer) AS k;
    IF NOT FOUND OR col.atttypid IN ('integer'::regtype, 'smallint'::regtype) THEN
        RETURN false;
    END IF;
    old_text := concat_ws(', ', coalesce('shard ' || old.shard, 'a shard that is no constant'),
                          'sequence ' || coalesce(old.seq::regclass::text, 'none that is constant'),
                          'epoch_ms ' || nullif(old.epoch_ms, snowflake_internal.default_epoch()),
                          'through ' || old.function::regprocedure);
    IF coalesce(shard, old.shard) IS DISTINCT FROM old.shard OR coalesce(seq, old.seq) IS DISTINCT FROM old.seq
       OR coalesce(epoch_ms, old.epoch_ms) IS DISTINCT FROM old.epoch_ms THEN
        RAISE EXCEPTION '% is attached already: %', described, old_text USING
            ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = format('Asked for is %s.',
                            concat_ws(', ', 'shard ' || shard, 'sequence ' || seq::text, 'epoch_ms ' || epoch_ms)),
            HINT = format('To change it: ALTER TABLE %s ALTER COLUMN %I DROP DEFAULT; SELECT %ssnowflake_attach(%s);',
                          col.attrelid::regclass, col.attname, snowflake_internal.prefix(),
                          snowflake_internal.attach_arguments(col.attrelid::regclass, col.attname, shard, seq, epoch_ms));
    END IF;
    RAISE NOTICE '% is attached already: %', described, old_text;
    RETURN true;
END;
$$;
-- Steps of snowflake_attach(): the column, its shard and its epoch.

-- The column that snowflake_attach() is to work on. Its errors are those that the table and the column alone decide.
CREATE FUNCTION snowflake_internal.attach_column(tbl regclass, column_name name) RETURNS pg_catalog.pg_attribute
    LANGUAGE plpgsql STABLE CALLED ON NULL INPUT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    described CONSTANT text := pg_describe_object('pg_class'::regclass, tbl, 0);
    rel pg_class;
    col pg_attribute;
BEGIN
    IF tbl IS NULL OR column_name IS NULL THEN
        RAISE EXCEPTION 'table and column of snowflake_attach() must not be null' USING
            ERRCODE = 'null_value_not_allowed',
            HINT = format('SELECT %ssnowflake_attach(''schema.table'', ''column'');', snowflake_internal.prefix());
    END IF;
    SELECT * INTO rel FROM pg_class AS c WHERE c.oid = tbl;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'table with OID % does not exist', tbl::oid USING ERRCODE = 'undefined_table',
            HINT = 'Give a table by its name: ''schema.table''::regclass.';
    END IF;

    -- The privilege comes first: a role without it gets no other error about the table.
    IF NOT pg_has_role(rel.relowner, 'USAGE') THEN
        RAISE EXCEPTION 'must be owner of %', described USING ERRCODE = 'insufficient_privilege',
            HINT = format('It belongs to %s: SET ROLE %1$s; if you are a member of that role.', rel.relowner::regrole);
    END IF;

    -- A view's column cannot own a sequence. The rows of a foreign table get their IDs on their own server.
    IF rel.relkind NOT IN ('r', 'p') THEN
        RAISE EXCEPTION 'cannot attach %', described USING ERRCODE = 'wrong_object_type',
            DETAIL = 'Only the column of a table can be given a sequence.',
            HINT = 'Attach the table that holds the rows.';
    END IF;
    IF rel.relnamespace IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace) THEN
        RAISE EXCEPTION 'cannot attach %', described USING ERRCODE = 'wrong_object_type',
            DETAIL = 'It is a system catalogue.',
            HINT = 'Attach a table of your own.';
    END IF;

    SELECT * INTO col FROM pg_attribute AS a
    WHERE a.attrelid = tbl AND a.attname = column_name AND a.attnum > 0 AND NOT a.attisdropped;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'column % of table % does not exist', quote_ident(column_name), tbl USING
            ERRCODE = 'undefined_column',
            HINT = format('Its columns of whole numbers: %s.',
                          (SELECT coalesce(string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum), 'none')
                           FROM pg_attribute AS a
                           WHERE a.attrelid = tbl AND a.attnum > 0 AND NOT a.attisdropped
                             AND a.atttypid IN ('bigint'::regtype, 'integer'::regtype, 'smallint'::regtype)));
    END IF;
    PERFORM snowflake_internal.attach_require_column(col);
    RETURN col;
END;
$$;

-- Refuses the column of a partition, one that is inherited, and one that is no bigint and cannot be made one.
CREATE FUNCTION snowflake_internal.attach_require_column(col pg_catalog.pg_attribute) RETURNS void
    LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    tbl CONSTANT regclass := col.attrelid;
    is_partition CONSTANT boolean := (SELECT c.relispartition FROM pg_class AS c WHERE c.oid = tbl);
    parent regclass;
BEGIN
    -- One sequence and one type for a whole tree of tables: they are given to its root.
    IF is_partition OR col.attinhcount > 0 THEN
        SELECT i.inhparent INTO parent FROM pg_inherits AS i
        JOIN pg_attribute AS a ON a.attrelid = i.inhparent AND a.attname = col.attname
        WHERE i.inhrelid = tbl ORDER BY i.inhseqno LIMIT 1;
        parent := coalesce(pg_partition_root(tbl), parent);
        RAISE EXCEPTION 'column % of table % is that of its parent %', quote_ident(col.attname), tbl, parent USING
            ERRCODE = 'wrong_object_type',
            DETAIL = format('%s %s %s.', tbl, CASE WHEN is_partition THEN 'is a partition of' ELSE 'inherits from' END, parent),
            HINT = format('Attach the parent, and all below it with it: SELECT %ssnowflake_attach(%L, %L);',
                          snowflake_internal.prefix(), parent, col.attname);
    ELSIF col.attgenerated <> '' THEN
        RAISE EXCEPTION 'column % of table % is a generated column', quote_ident(col.attname), tbl USING
            ERRCODE = 'generated_always',
            DETAIL = 'A generated column has no DEFAULT.',
            HINT = CASE col.attgenerated
                WHEN 's' THEN format('ALTER TABLE %s ALTER COLUMN %I DROP EXPRESSION;', tbl, col.attname)
                ELSE 'Choose another column.' END;
    -- A domain has the output function of its base type. A domain over bigint can stay, one over integer not.
    ELSIF NOT (col.atttypid IN ('integer'::regtype, 'smallint'::regtype) OR EXISTS (
                   SELECT FROM pg_type AS t WHERE t.oid = col.atttypid AND t.typoutput = 'int8out'::regproc)) THEN
        RAISE EXCEPTION 'column % of table % is of type %',
            quote_ident(col.attname), tbl, format_type(col.atttypid, col.atttypmod) USING ERRCODE = 'datatype_mismatch',
            DETAIL = 'An ID is a bigint; integer and smallint columns are made bigint.',
            HINT = format('If it holds whole numbers: ALTER TABLE %s ALTER COLUMN %I TYPE bigint USING %2$I::bigint;',
                          tbl, col.attname);
    END IF;
END;
$$;

-- Refuses a column that has its values from the column of another table.
-- Of one column only: with several, a column that is NULL for a new row leaves the key unchecked.
CREATE FUNCTION snowflake_internal.attach_require_own_ids(col pg_catalog.pg_attribute, shard integer, epoch_ms bigint)
    RETURNS void LANGUAGE plpgsql STABLE CALLED ON NULL INPUT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    key record;
BEGIN
    SELECT f.conname, a.attrelid::regclass AS tbl, a.attname, c.relnamespace = r.relnamespace AS is_near INTO key
    FROM pg_constraint AS f
    JOIN pg_attribute AS a ON a.attrelid = f.confrelid AND a.attnum = f.confkey[1]
    JOIN pg_class AS r ON r.oid = f.confrelid
    JOIN pg_class AS c ON c.oid = f.conrelid
    WHERE f.conrelid = col.attrelid AND f.contype = 'f' AND f.conparentid = 0 AND f.conkey = ARRAY[col.attnum]
      AND (f.confrelid, f.confkey[1]) <> (col.attrelid, col.attnum)
    ORDER BY f.conname COLLATE "C" LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'column % of table % refers to column % of table %',
            quote_ident(col.attname), col.attrelid::regclass, quote_ident(key.attname), key.tbl USING
            ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = format('A DEFAULT would make IDs that are not in table %s. Foreign key %I allows no others.',
                            key.tbl, key.conname),
            HINT = format('Attach the column that it refers to. That makes this one a bigint, too: '
                          'SELECT %ssnowflake_attach(%s);', snowflake_internal.prefix(),
                          snowflake_internal.attach_arguments(key.tbl, key.attname,
                                                              CASE WHEN key.is_near THEN shard END, NULL, epoch_ms));
    END IF;
END;
$$;

-- Shard and epoch for a new column: those given, or else those of its schema's function next_id(), or else of the
-- schema's columns; and the schema.
CREATE FUNCTION snowflake_internal.attach_shard(
        col pg_catalog.pg_attribute, given integer, given_epoch bigint,
        OUT shard integer, OUT epoch_ms bigint, OUT schema name)
    LANGUAGE plpgsql VOLATILE CALLED ON NULL INPUT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    tbl CONSTANT regclass := col.attrelid;
    is_temporary boolean;
    shards integer[];
    epochs bigint[];
BEGIN
    SELECT n.nspname, c.relpersistence = 't' INTO STRICT schema, is_temporary
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE c.oid = tbl;

    -- First the callers that make IDs of the given shard, then the schema's functions, then its columns.
    SELECT array_agg(DISTINCT v.shard), array_agg(DISTINCT v.epoch_ms) FILTER (WHERE v.epoch_ms IS NOT NULL)
    INTO shards, epochs
    FROM (SELECT s.shard, s.epoch_ms, rank() OVER (ORDER BY given <> s.shard, s.function IS NULL) AS choice
          FROM snowflake_internal.shards() AS s WHERE s.schema = (SELECT c.relnamespace FROM pg_class AS c WHERE c.oid = tbl)) AS v
    WHERE v.choice = 1;

    IF given_epoch IS NULL AND cardinality(epochs) > 1 THEN
        RAISE EXCEPTION 'schema % has more than one epoch', quote_ident(schema) USING
            ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = format('It makes IDs of shard %s with epoch_ms %s.', array_to_string(shards, ', '),
                            array_to_string(epochs, ', ')),
            HINT = format('Say which: SELECT %ssnowflake_attach(%s, epoch_ms => ...);', snowflake_internal.prefix(),
                          snowflake_internal.attach_arguments(tbl, col.attname, coalesce(given, shards[1]), NULL, NULL));
    ELSIF given IS NULL AND cardinality(shards) > 1 THEN
        RAISE EXCEPTION 'schema % has more than one shard', quote_ident(schema) USING
            ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = format('It makes IDs of the shards %s.', array_to_string(shards, ', ')),
            HINT = format('Say which: SELECT %ssnowflake_attach(%s);', snowflake_internal.prefix(),
                          snowflake_internal.attach_arguments(tbl, col.attname, shards[1], NULL, given_epoch));
    ELSIF given IS NULL AND shards IS NULL THEN
        RAISE EXCEPTION 'schema % has no shard', quote_ident(schema) USING ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = 'Nothing in it makes IDs yet.',
            HINT = format('With n from 0 to 8191: SELECT %1$ssnowflake_attach(%2$L, %3$L, shard => n);'
                          || CASE WHEN is_temporary THEN '' ELSE ' or, for the schema, SELECT %1$ssnowflake_create_shard(n, %4$L);' END,
                          snowflake_internal.prefix(), tbl, col.attname, schema);
    END IF;
    shard := coalesce(given, shards[1]);
    epoch_ms := coalesce(given_epoch, epochs[1], snowflake_internal.default_epoch());
    PERFORM snowflake_internal.encode(clock_timestamp(), 0, 0, epoch_ms); -- an error if no ID can be made now
END;
$$;

-- Refuses a column whose DEFAULT calls a function that is not native: the caller has to give the epoch of its IDs.
CREATE FUNCTION snowflake_internal.attach_require_known_epoch(
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
                    format('SELECT %ssnowflake_adopt(%L, shard => %s) finds the epoch out, and makes the function native for '
                           'all columns that use it.', snowflake_internal.prefix(), old.function, shard) END,
                format('To attach only this column, name the epoch of its IDs: '
                       'SELECT %ssnowflake_attach(%s, epoch_ms => ...);', snowflake_internal.prefix(), arguments));
    END IF;
END;
$$;
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
-- Steps of snowflake_attach(): which sequence, and its other users.

-- The object in pg_depend (a DEFAULT, or a type) that a new value of each column comes from.
CREATE FUNCTION snowflake_internal.attach_old_defaults(scope snowflake_internal.attach_member[])
    RETURNS TABLE (tbl regclass, attnum smallint, column_name name, classid oid, objid oid)
    LANGUAGE sql STABLE STRICT PARALLEL SAFE ROWS 1 SET search_path = pg_catalog, pg_temp AS $$
-- A column without a DEFAULT has that of its domain.
SELECT s.tbl, s.attnum, s.column_name,
       CASE WHEN f.oid IS NULL THEN 'pg_type'::regclass ELSE 'pg_attrdef'::regclass END, coalesce(f.oid, a.atttypid)
FROM unnest($1) AS s
JOIN pg_attribute AS a ON a.attrelid = s.tbl AND a.attnum = s.attnum
LEFT JOIN pg_attrdef AS f ON f.adrelid = s.tbl AND f.adnum = s.attnum
WHERE s.is_attached
$$;

-- The sequences that a column owns, as a serial column does, and those that its DEFAULT, or one below it, draws from.
-- Only stored expressions are seen: a function with a body in text, such as PL/pgSQL, does not depend on its sequence.
CREATE FUNCTION snowflake_internal.attach_old_sequences(scope snowflake_internal.attach_member[])
    RETURNS TABLE (seq regclass, is_owned boolean, is_drawn boolean)
    LANGUAGE sql STABLE STRICT PARALLEL SAFE ROWS 1 SET search_path = pg_catalog, pg_temp AS $$
SELECT u.seq, bool_or(u.is_owned), bool_or(NOT u.is_owned)
FROM (SELECT d.objid AS seq, true AS is_owned
      FROM unnest($1) AS s
      JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = s.tbl AND d.refobjsubid = s.attnum
                         AND d.classid = 'pg_class'::regclass AND d.deptype = 'a'
      WHERE s.is_attached AND s.tbl = s.root
      UNION
      SELECT d.refobjid, false
      FROM snowflake_internal.attach_old_defaults($1) AS o
      JOIN pg_depend AS d ON d.classid = o.classid AND d.objid = o.objid AND d.refclassid = 'pg_class'::regclass) AS u
JOIN pg_class AS c ON c.oid = u.seq AND c.relkind = 'S'
GROUP BY u.seq
$$;

-- Other users of a sequence than the columns that are to be attached: columns, views, functions; natively or not, with which epoch.
CREATE FUNCTION snowflake_internal.attach_users(seq regclass, scope snowflake_internal.attach_member[])
    RETURNS TABLE (described text, tbl regclass, column_name name, is_root boolean, is_native boolean, epoch_ms bigint)
    LANGUAGE sql STABLE STRICT PARALLEL RESTRICTED ROWS 1 SET search_path = pg_catalog, pg_temp AS $$
SELECT DISTINCT pg_describe_object(u.classid, u.objid, 0), f.adrelid::regclass, a.attname, a.attinhcount = 0,
       k.seq IS NOT NULL, k.epoch_ms
FROM snowflake_internal.dependents('pg_class'::regclass, $1, 0) AS u
LEFT JOIN pg_attrdef AS f ON u.classid = 'pg_attrdef'::regclass AND f.oid = u.objid
LEFT JOIN pg_attribute AS a ON a.attrelid = f.adrelid AND a.attnum = f.adnum
LEFT JOIN LATERAL snowflake_internal.call_of(CASE WHEN f.oid IS NULL THEN u.classid ELSE 'pg_class'::regclass::oid END,
                                             coalesce(f.adrelid, u.objid), coalesce(f.adnum, 0)) AS k ON k.seq = $1
WHERE NOT EXISTS (SELECT FROM unnest($2) AS s WHERE s.is_attached AND s.tbl = f.adrelid AND s.attnum = f.adnum)
  AND NOT snowflake_internal.asks_settled(u.classid, u.objid)
$$;

-- The sequence to draw from: the given one, or the one that the column owns; NULL: one is to be made.
-- The sequence of a serial column is kept: its privileges, its name in scripts, its owner. Not if others draw
-- from it: their numbers would jump to 2^50 and beyond, and an integer column would take no row any more.
CREATE FUNCTION snowflake_internal.attach_sequence(
        scope snowflake_internal.attach_member[], shard integer, seq regclass, epoch_ms bigint) RETURNS regclass
    LANGUAGE plpgsql STABLE CALLED ON NULL INPUT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    col CONSTANT snowflake_internal.attach_member := scope[1];
    schema regnamespace;
    kept regclass;
BEGIN
    IF seq IS NOT NULL THEN
        PERFORM snowflake_internal.attach_require_sequence(scope, shard, seq, epoch_ms);
        RETURN seq;
    END IF;
    PERFORM snowflake_internal.attach_require_unshared(scope, shard, epoch_ms);
    SELECT o.seq INTO kept
    FROM snowflake_internal.attach_old_sequences(scope) AS o
    WHERE o.is_owned AND NOT EXISTS (SELECT FROM snowflake_internal.attach_users(o.seq, scope))
    ORDER BY o.is_drawn DESC, o.seq LIMIT 1;
    PERFORM snowflake_internal.require_open(kept);
    SELECT c.relnamespace INTO schema FROM pg_class AS c WHERE c.oid = col.tbl;
    IF kept IS NULL AND NOT has_schema_privilege(schema, 'CREATE') THEN
        RAISE EXCEPTION 'permission denied for schema %', schema USING
            ERRCODE = 'insufficient_privilege',
            DETAIL = format('The sequence of column %I of table %s is to be made in it.', col.column_name, col.tbl),
            HINT = format('GRANT CREATE ON SCHEMA %s TO %I;', schema, current_user);
    END IF;
    RETURN kept;
END;
$$;

-- Refuses a column whose DEFAULT draws from a sequence that others draw from, too; the hint has the statements to share
-- it, or to part them. Two columns that had their numbers from one sequence expect that no number is in both. With a
-- sequence for each there would be such numbers, so the caller has to decide.
CREATE FUNCTION snowflake_internal.attach_require_unshared(
        scope snowflake_internal.attach_member[], shard integer, epoch_ms bigint) RETURNS void
    LANGUAGE plpgsql STABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    col CONSTANT snowflake_internal.attach_member := scope[1];
    old record;
BEGIN
    SELECT o.seq, string_agg(u.described, E'\n' ORDER BY u.described COLLATE "C") AS others,
           max(u.epoch_ms) AS epoch_ms INTO old
    FROM snowflake_internal.attach_old_sequences(scope) AS o
    CROSS JOIN LATERAL snowflake_internal.attach_users(o.seq, scope) AS u
    WHERE o.is_drawn
    GROUP BY o.seq ORDER BY o.seq LIMIT 1;
    IF FOUND THEN
        PERFORM snowflake_internal.require_open(old.seq);
        epoch_ms := nullif(coalesce(old.epoch_ms, epoch_ms), snowflake_internal.default_epoch());
        RAISE EXCEPTION 'column % of table % draws from a sequence that others draw from, too',
            quote_ident(col.column_name), col.tbl USING ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = format(E'Others that draw from sequence %s:\n%s', old.seq, old.others),
            HINT = concat_ws(E'\n',
                'Run one of these, in one transaction. To share the sequence, so that no ID is in two columns:',
                (SELECT snowflake_internal.reshape_hint(old.seq) FROM pg_sequence AS q
                 WHERE q.seqrelid = old.seq
                   AND NOT snowflake_internal.holds_position(q.seqtypid, q.seqincrement, q.seqmax)),
                -- Columns of other schemas are of other shards.
                (SELECT string_agg(format('SELECT %ssnowflake_attach(%s);', snowflake_internal.prefix(), snowflake_internal.attach_arguments(
                                       v.tbl, v.column_name, CASE WHEN c.relnamespace = o.relnamespace THEN shard END,
                                       old.seq, attach_require_unshared.epoch_ms)),
                                   E'\n' ORDER BY v.position, v.tbl::text COLLATE "C", v.column_name COLLATE "C")
                 FROM (SELECT 1 AS position, col.tbl, col.column_name
                       UNION ALL
                       SELECT 2, u.tbl, u.column_name FROM snowflake_internal.attach_users(old.seq, scope) AS u
                       WHERE u.is_root AND NOT u.is_native) AS v
                 JOIN pg_class AS c ON c.oid = v.tbl
                 JOIN pg_class AS o ON o.oid = col.tbl),
                'For a sequence of its own:',
                -- DROP DEFAULT would leave the default of a domain.
                format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT NULL;', col.tbl, col.column_name),
                format('SELECT %ssnowflake_attach(%s);', snowflake_internal.prefix(),
                       snowflake_internal.attach_arguments(col.tbl, col.column_name, shard, NULL, epoch_ms)));
    END IF;
END;
$$;

-- Refuses a given sequence that the caller may not use, that cannot hold positions, that goes before the table does, or that has another epoch.
CREATE FUNCTION snowflake_internal.attach_require_sequence(
        scope snowflake_internal.attach_member[], shard integer, seq regclass, epoch_ms bigint) RETURNS void
    LANGUAGE plpgsql STABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    col CONSTANT snowflake_internal.attach_member := scope[1];
    rel pg_class;
    other record;
    has_rows CONSTANT boolean := (SELECT bool_or(pg_relation_size(s.tbl) > 0) FROM unnest(scope) AS s WHERE s.is_attached);
BEGIN
    PERFORM snowflake_internal.require_sequence(seq);
    IF NOT has_sequence_privilege(seq, CASE WHEN has_rows THEN 'UPDATE' ELSE 'USAGE, UPDATE' END) THEN
        RAISE EXCEPTION 'permission denied for sequence %', seq USING ERRCODE = 'insufficient_privilege',
            DETAIL = CASE WHEN has_rows
                THEN format('It must be advanced beyond the IDs of table %s. A role that may do that can set it back, too.',
                            col.tbl)
                ELSE 'Each new row draws an ID from it.' END,
            HINT = format('GRANT %s ON SEQUENCE %s TO %I;', CASE WHEN has_rows THEN 'UPDATE' ELSE 'USAGE' END, seq,
                          current_user);
    END IF;
    IF EXISTS (SELECT FROM pg_depend AS d WHERE d.classid = 'pg_class'::regclass AND d.objid = seq AND d.deptype = 'i')
    THEN
        RAISE EXCEPTION 'sequence % belongs to an identity column', seq USING
            ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = 'It serves that column alone, and is dropped with the identity.',
            HINT = 'Make one to share with CREATE SEQUENCE, and attach each column with it.';
    END IF;
    -- A crash resets an unlogged sequence, and the end of its session drops a temporary one.
    SELECT * INTO rel FROM pg_class AS c WHERE c.oid = seq;
    IF rel.relpersistence NOT IN ('p', (SELECT c.relpersistence FROM pg_class AS c WHERE c.oid = col.tbl)) THEN
        RAISE EXCEPTION 'sequence % is %, and table % is not', seq,
            CASE rel.relpersistence WHEN 'u' THEN 'unlogged' ELSE 'temporary' END, col.tbl USING
            ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = 'It would be lost before the table is, and would make the same IDs again.',
            HINT = CASE rel.relpersistence WHEN 'u' THEN format('ALTER SEQUENCE %s SET LOGGED;', seq)
                                           ELSE 'Choose another sequence.' END;
    END IF;
    SELECT u.described, u.epoch_ms INTO other FROM snowflake_internal.attach_users(seq, scope) AS u
    WHERE u.epoch_ms <> attach_require_sequence.epoch_ms ORDER BY u.described COLLATE "C" LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'sequence % makes IDs with another epoch', seq USING
            ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = format('It is %s in %s, and would be %s here. With two epochs, '
                            'one sequence can make the same ID twice.',
                            other.epoch_ms, other.described, epoch_ms),
            HINT = format('SELECT %ssnowflake_attach(%s);', snowflake_internal.prefix(),
                          snowflake_internal.attach_arguments(col.tbl, col.column_name, shard, seq, other.epoch_ms));
    END IF;
END;
$$;

-- NOTICEs: the DEFAULTs that are replaced (a child has its parent's, or one of its own), the old sequences of the
-- column, and the objects that draw from the new one by nextval().
CREATE FUNCTION snowflake_internal.attach_tell_old(scope snowflake_internal.attach_member[], new_seq regclass)
    RETURNS void
    LANGUAGE plpgsql STABLE CALLED ON NULL INPUT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    col CONSTANT snowflake_internal.attach_member := scope[1];
    old record;
    others text;
BEGIN
    FOR old IN
        SELECT s.tbl, pg_get_expr(f.adbin, f.adrelid) AS expression
        FROM unnest(scope) AS s
        JOIN pg_attrdef AS f ON f.adrelid = s.tbl AND f.adnum = s.attnum
        LEFT JOIN pg_attrdef AS r ON r.adrelid = col.tbl AND r.adnum = col.attnum
        WHERE s.is_attached
          AND (s.tbl = col.tbl OR pg_get_expr(f.adbin, f.adrelid) IS DISTINCT FROM pg_get_expr(r.adbin, r.adrelid))
          AND NOT EXISTS (SELECT FROM pg_depend AS d WHERE d.classid = 'pg_attrdef'::regclass AND d.objid = f.oid
                          AND d.refclassid = 'pg_class'::regclass AND d.refobjid = new_seq)
        ORDER BY s.tbl
    LOOP
        RAISE NOTICE 'column % of table % had DEFAULT %', quote_ident(col.column_name), old.tbl, old.expression;
    END LOOP;
    FOR old IN
        SELECT o.seq, (SELECT string_agg(u.described, E'\n' ORDER BY u.described COLLATE "C")
                       FROM snowflake_internal.attach_users(o.seq, scope) AS u) AS others
        FROM snowflake_internal.attach_old_sequences(scope) AS o
        WHERE o.is_owned AND o.seq IS DISTINCT FROM new_seq
        ORDER BY o.seq
    LOOP
        RAISE NOTICE 'sequence % stays as it is; column % of table % does not draw from it',
            old.seq, quote_ident(col.column_name), col.tbl USING
            DETAIL = coalesce(old.others, 'Nothing else is known to draw from it.');
    END LOOP;
    -- Only a given sequence has other users.
    SELECT string_agg(u.described, E'\n' ORDER BY u.described COLLATE "C") INTO others
    FROM snowflake_internal.attach_users(new_seq, scope) AS u WHERE NOT u.is_native;
    IF others IS NOT NULL THEN
        RAISE NOTICE 'nextval() of sequence % makes numbers above 2^50 from now on, which are no IDs', new_seq USING
            DETAIL = others,
            HINT = format('Attach the columns with seq => %L, too. Let the others draw from another sequence.',
                          new_seq);
    END IF;
END;
$$;
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
-- Steps of snowflake_attach(): obstacles. ALTER TABLE would refuse them one by one, some only after an hour of rewriting:
-- see ATPrepAlterColumnType() and ATExecAlterColumnType() in PostgreSQL's tablecmds.c.

-- The dependents of the type of a narrow column, and theirs: a line that describes it, the object, the statement that
-- drops it (NULL: none), and how far it is from the column.
CREATE FUNCTION snowflake_internal.attach_dependents(scope snowflake_internal.attach_member[])
    RETURNS TABLE (line text, classid oid, objid oid, drop_text text, depth integer)
    LANGUAGE sql STABLE STRICT PARALLEL SAFE ROWS 1 SET search_path = pg_catalog, pg_temp AS $$
-- ALTER TABLE rebuilds indexes, constraints, statistics and the column's own DEFAULT. An owned sequence does
-- not depend on the type. All else that depends on the column must be dropped, and before it its own
-- dependents. Objects of unknown kinds count, too: a later version may have new ones.
WITH RECURSIVE found AS (
    SELECT d.classid, d.objid, 0 AS depth, pg_describe_object('pg_class'::regclass, s.tbl, s.attnum) AS depends_on,
           snowflake_internal.drop_text(d.classid, d.objid) AS drop_text
    FROM unnest($1) AS s
    CROSS JOIN LATERAL snowflake_internal.dependents('pg_class'::regclass, s.tbl, s.attnum) AS d
    LEFT JOIN pg_class AS c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid
    LEFT JOIN pg_attrdef AS f ON d.classid = 'pg_attrdef'::regclass AND f.oid = d.objid
    WHERE s.is_narrow
      AND d.classid NOT IN ('pg_constraint'::regclass, 'pg_statistic_ext'::regclass)
      AND coalesce(c.relkind, 'v') NOT IN ('i', 'I', 'S')
      AND (f.adrelid, f.adnum) IS DISTINCT FROM (s.tbl::oid, s.attnum)
    UNION
    SELECT d.classid, d.objid, o.depth + 1, pg_describe_object(o.classid, o.objid, 0),
           snowflake_internal.drop_text(d.classid, d.objid)
    FROM found AS o
    CROSS JOIN LATERAL snowflake_internal.dependents(o.classid, o.objid, 0) AS d
    WHERE o.drop_text IS NOT NULL
      AND o.depth < 100 -- views and functions can depend on each other in a circle
)
SELECT format('%s depends on %s',
              coalesce('generated ' || pg_describe_object('pg_class'::regclass, f.adrelid, f.adnum),
                       pg_describe_object(o.classid, o.objid, 0)),
              o.depends_on),
       o.classid, o.objid, o.drop_text, o.depth
FROM found AS o
LEFT JOIN (pg_attrdef AS f JOIN pg_attribute AS a ON a.attrelid = f.adrelid AND a.attnum = f.adnum
           AND a.attgenerated <> '')
       ON o.classid = 'pg_attrdef'::regclass AND f.oid = o.objid
WHERE o.drop_text IS DISTINCT FROM ''
$$;

-- Columns of other tables that hold rows of a table with a narrow column, partition keys, foreign keys to partitions,
-- and triggers of foreign keys, one line each.
CREATE FUNCTION snowflake_internal.attach_table_obstacles(scope snowflake_internal.attach_member[]) RETURNS SETOF text
    LANGUAGE sql STABLE STRICT PARALLEL SAFE ROWS 1 SET search_path = pg_catalog, pg_temp AS $$
-- ALTER TABLE does not rewrite a row of the table that is stored in a column of another one.
WITH RECURSIVE row_types AS (
    -- The table's row type, and arrays, domains and composites of it.
    SELECT DISTINCT s.tbl, c.reltype AS type
    FROM unnest($1) AS s JOIN pg_class AS c ON c.oid = s.tbl WHERE s.is_narrow
    UNION
    SELECT r.tbl, coalesce(c.reltype, d.objid)
    FROM row_types AS r
    JOIN pg_depend AS d ON d.refclassid = 'pg_type'::regclass AND d.refobjid = r.type
    LEFT JOIN pg_class AS c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid AND c.relkind = 'c'
    WHERE d.classid = 'pg_type'::regclass OR c.oid IS NOT NULL
)
SELECT format('%s holds rows of table %s', pg_describe_object('pg_class'::regclass, d.objid, d.objsubid), r.tbl)
FROM row_types AS r
JOIN pg_depend AS d ON d.refclassid = 'pg_type'::regclass AND d.refobjid = r.type
                   AND d.classid = 'pg_class'::regclass AND d.objsubid > 0
JOIN pg_class AS c ON c.oid = d.objid AND c.relkind IN ('r', 'p', 'm')
UNION ALL
-- The columns of a partition key depend on the table, and the table does not depend on them.
SELECT format('%s is in the partition key', pg_describe_object('pg_class'::regclass, s.tbl, s.attnum))
FROM unnest($1) AS s
JOIN pg_depend AS d ON d.classid = 'pg_class'::regclass AND d.objid = s.tbl AND d.objsubid = s.attnum
                   AND d.refclassid = 'pg_class'::regclass AND d.refobjid = s.tbl AND d.refobjsubid = 0
WHERE s.is_narrow AND d.deptype = 'i'
UNION ALL
-- ALTER TABLE drops the partition's index, which such a key relies on, with the parent's index before the key.
SELECT format('%s refers to a partition, %s', pg_describe_object('pg_constraint'::regclass, f.oid, 0), s.tbl)
FROM unnest($1) AS s
JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = s.tbl AND d.refobjsubid = s.attnum
                   AND d.classid = 'pg_constraint'::regclass
JOIN pg_constraint AS f ON f.oid = d.objid AND f.contype = 'f' AND f.confrelid = s.tbl AND f.conparentid = 0
JOIN pg_class AS x ON x.oid = f.conindid AND x.relispartition
WHERE s.is_narrow
UNION ALL
-- The triggers of a key that is made again are enabled.
SELECT format('%s is not enabled as usual: ALTER TABLE %s ENABLE TRIGGER %I;',
              pg_describe_object('pg_trigger'::regclass, t.oid, 0), t.tgrelid::regclass, t.tgname)
FROM snowflake_internal.attach_keys($1) AS f JOIN pg_trigger AS t ON t.tgconstraint = f.oid AND t.tgenabled <> 'O'
$$;

-- Columns that ALTER TABLE cannot change as asked for, one line each.
CREATE FUNCTION snowflake_internal.attach_column_obstacles(scope snowflake_internal.attach_member[], seq regclass)
    RETURNS SETOF text
    LANGUAGE sql STABLE CALLED ON NULL INPUT PARALLEL RESTRICTED ROWS 1 SET search_path = pg_catalog, pg_temp AS $$
WITH columns AS MATERIALIZED (
    SELECT s.*, pg_describe_object('pg_class'::regclass, s.tbl, s.attnum) AS described,
           c.relkind, c.reloftype, c.relnamespace, a.atttypid, a.attgenerated
    FROM unnest($1) AS s
    JOIN pg_class AS c ON c.oid = s.tbl
    JOIN pg_attribute AS a ON a.attrelid = s.tbl AND a.attnum = s.attnum
    WHERE s.is_attached OR s.is_narrow
)
-- ALTER TABLE cannot change the type here: it is that of a composite type, of a column on another server, ...
SELECT format('%s is of a typed table: ALTER TYPE %s ALTER ATTRIBUTE %I TYPE bigint CASCADE;', s.described,
              s.reloftype::regtype, s.column_name)
FROM columns AS s WHERE s.is_narrow AND s.reloftype <> 0
UNION ALL
SELECT format('%s is of a foreign table', s.described) FROM columns AS s WHERE s.is_narrow AND s.relkind = 'f'
UNION ALL
SELECT format('%s is of the domain %s', s.described, s.atttypid::regtype)
FROM columns AS s JOIN pg_type AS t ON t.oid = s.atttypid WHERE s.is_narrow AND t.typtype = 'd'
UNION ALL
SELECT format('%s is a generated column', s.described) FROM columns AS s WHERE s.is_narrow AND s.attgenerated <> ''
UNION ALL
-- Only its own session can read a temporary table.
SELECT format('%s is of a temporary table of another session', s.described)
FROM columns AS s WHERE pg_is_other_temp_schema(s.relnamespace)
UNION ALL
-- The type of a column must be changed in all parents at once. With a sequence for each parent, a SELECT from
-- one of them would show IDs of both.
SELECT format(CASE WHEN s.is_narrow THEN '%s is inherited from several parents'
                   ELSE '%s is inherited from %s, too: attach both with the same seq' END, s.described, o.root)
FROM columns AS s
JOIN unnest($1) AS o ON o.tbl = s.tbl AND o.attnum = s.attnum AND o.root <> s.root
JOIN pg_attribute AS a ON a.attrelid = o.root AND a.attname = o.column_name
WHERE s.is_narrow OR $2 IS NULL
   OR EXISTS (SELECT FROM snowflake_internal.call_of('pg_class'::regclass::oid, a.attrelid, a.attnum::integer) AS k
              WHERE k.seq <> $2)
UNION ALL
-- A child's own identity takes no DEFAULT from its parent. The sequence of the column's identity is dropped.
SELECT CASE WHEN u.objid IS NULL THEN format('%s is an identity column', s.described)
            ELSE format('%s depends on %s', pg_describe_object(u.classid, u.objid, u.objsubid),
                        pg_describe_object(d.classid, d.objid, 0)) END
FROM columns AS s
JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = s.tbl AND d.refobjsubid = s.attnum
                   AND d.classid = 'pg_class'::regclass AND d.deptype = 'i'
JOIN pg_class AS q ON q.oid = d.objid AND q.relkind = 'S'
LEFT JOIN pg_depend AS u ON u.refclassid = 'pg_class'::regclass AND u.refobjid = q.oid AND u.deptype = 'n'
WHERE s.is_attached AND (u.objid IS NOT NULL OR s.tbl <> s.root)
$$;

-- A word for a shell, in one line.
CREATE FUNCTION snowflake_internal.shell_quote(word text) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
-- A line break would end the comment that the word is in. pg_dump does not find the changed name, and says so.
SELECT '''' || replace(regexp_replace($1, '[\n\r]+', ' ', 'g'), '''', '''\''''') || ''''
$$;

-- Statements that save the dependents of the columns, drop them and attach; NULL: nothing can be dropped.
CREATE FUNCTION snowflake_internal.attach_clear_text(scope snowflake_internal.attach_member[], arguments text)
    RETURNS text LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
-- If all of it is pasted into psql, the transaction stays open: nothing is lost.
WITH objects AS (
    -- An object can be reached on several ways. The longest tells when to drop it: before the objects it depends on.
    SELECT d.drop_text, max(d.depth) AS depth,
           -- The pattern by which pg_dump -t selects the object. It has no option for a function, or for a table in a
           -- publication.
           CASE WHEN o.type NOT IN ('function', 'procedure', 'publication relation')
                THEN format('%I.%I', o.object_names[1], o.object_names[2]) END AS pattern,
           o.type <> 'index' AS is_selected -- comes with its materialized view
    FROM snowflake_internal.attach_dependents($1) AS d
    CROSS JOIN LATERAL pg_identify_object_as_address(d.classid, d.objid, 0) AS o
    WHERE d.drop_text IS NOT NULL
    GROUP BY d.drop_text, o.type, o.object_names
)
SELECT concat_ws(E'\n',
    '-- 1. In a shell, save the definitions of the dropped objects, with owners, privileges and comments:',
    format('--    pg_dump --schema-only --strict-names%s -f before.sql %s',
           CASE WHEN bool_and(o.pattern IS NOT NULL) THEN
               string_agg(DISTINCT ' -t ' || snowflake_internal.shell_quote(o.pattern) COLLATE "C", '')
                   FILTER (WHERE o.is_selected) END,
           snowflake_internal.shell_quote(current_database())),
    '-- 2. Drop it and attach, in one transaction:',
    'BEGIN;',
    string_agg(o.drop_text, E'\n' ORDER BY o.depth DESC, o.drop_text COLLATE "C"),
    format('SELECT %ssnowflake_attach(%s);', snowflake_internal.prefix(), $2),
    '-- 3. Run from before.sql the statements that create the dropped objects, and no others: the file can have the '
        'old',
    '--    DEFAULT, too. REFRESH materialized views. Then COMMIT;')
FROM objects AS o
HAVING count(*) > 0
$$;

-- Refuses columns with something in the way of the change; lists all of it, with the statements that drop it and attach.
CREATE FUNCTION snowflake_internal.attach_require_clear(
        scope snowflake_internal.attach_member[], seq regclass, arguments text) RETURNS void
    LANGUAGE plpgsql STABLE CALLED ON NULL INPUT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    col CONSTANT snowflake_internal.attach_member := scope[1];
    clear_text CONSTANT text := snowflake_internal.attach_clear_text(scope, arguments);
    lines text;
    by_hand boolean;
BEGIN
    SELECT string_agg(DISTINCT o.line COLLATE "C", E'\n'), bool_or(o.by_hand) INTO lines, by_hand
    FROM (SELECT d.line, d.drop_text IS NULL FROM snowflake_internal.attach_dependents(scope) AS d
          UNION ALL SELECT t.line, true FROM snowflake_internal.attach_table_obstacles(scope) AS t(line)
          UNION ALL
          SELECT t.line, true FROM snowflake_internal.attach_column_obstacles(scope, seq) AS t(line)
         ) AS o(line, by_hand);
    IF lines IS NOT NULL THEN
        RAISE EXCEPTION 'cannot attach column % of table %', quote_ident(col.column_name), col.tbl USING
            ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = lines,
            HINT = CASE WHEN clear_text IS NULL THEN 'Change or drop the listed objects, and attach again.'
                        ELSE concat_ws(E'\n', CASE WHEN by_hand
                            THEN '-- First change or drop by hand the listed objects that are not dropped here.' END,
                            clear_text) END;
    END IF;
END;
$$;
-- Steps of snowflake_attach(): NOTICEs of functions, subscriptions and transactions that may fail or return other
-- values after the change. The catalogue does not show which are.

-- Says which triggers may set the column, and which functions name an integer type beside a table whose column is widened.
CREATE FUNCTION snowflake_internal.attach_tell_broken(scope snowflake_internal.attach_member[]) RETURNS void
    LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    col CONSTANT snowflake_internal.attach_member := scope[1];
    field CONSTANT text := 'new\."?' || regexp_replace(col.column_name, '(\W)', '\\\1', 'g');
    listed text;
BEGIN
    SELECT string_agg(format('%s calls %s', pg_describe_object('pg_trigger'::regclass, t.oid, 0), p.oid::regprocedure),
                      E'\n' ORDER BY t.tgrelid::regclass::text COLLATE "C", t.tgname) INTO listed
    FROM unnest(scope) AS s
    JOIN pg_trigger AS t ON t.tgrelid = s.tbl AND t.tgparentid = 0 AND NOT t.tgisinternal AND t.tgenabled <> 'D'
                        AND t.tgtype & 7 = 7 -- FOR EACH ROW, BEFORE, INSERT
    JOIN pg_proc AS p ON p.oid = t.tgfoid
    WHERE s.is_attached
      AND p.prosrc ~* ('\m' || field || '"?\s*:?=|\minto\s+(strict\s+)?' || field || '(\W|$)|\mnextval\M');
    IF listed IS NOT NULL THEN
        RAISE NOTICE 'a trigger may set column % of table % in place of its DEFAULT',
            quote_ident(col.column_name), col.tbl USING
            DETAIL = listed,
            HINT = 'Take it out of the trigger''s function, or drop the trigger.';
    END IF;

    -- A body in text has no dependencies, so its words are searched. Shards have tables of the same names: a function
    -- of another schema counts only if it names this one, in its body or in its settings.
    SELECT string_agg(DISTINCT pg_describe_object('pg_proc'::regclass, p.oid, 0) COLLATE "C", E'\n') INTO listed
    FROM (SELECT n.oid AS schema, w.word[1] AS of_schema,
                 '(^|\W)(' || string_agg(DISTINCT w.word[2], '|') || ')(\W|$)' AS of_tables
          FROM unnest(scope) AS s
          JOIN pg_class AS c ON c.oid = s.tbl
          JOIN pg_namespace AS n ON n.oid = c.relnamespace
          CROSS JOIN LATERAL (SELECT ARRAY['(^|\W)' || regexp_replace(n.nspname, '(\W)', '\\\1', 'g') || '(\W|$)',
                                           regexp_replace(c.relname, '(\W)', '\\\1', 'g')] AS word) AS w
          WHERE s.is_narrow AND s.tbl = s.root
          GROUP BY n.oid, w.word[1]) AS t
    JOIN pg_proc AS p ON p.prosrc ~* t.of_tables
        AND (p.pronamespace = t.schema OR concat_ws(' ', p.prosrc, p.proconfig) ~* t.of_schema)
    WHERE p.pronamespace NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)
      AND (p.prosrc ~* '\m(integer|int|int4|int2|smallint|serial|serial4|serial2|smallserial)\M'
           OR p.prorettype || coalesce(p.proallargtypes, p.proargtypes::oid[])
              && ARRAY['integer'::regtype, 'smallint'::regtype, 'integer[]'::regtype, 'smallint[]'::regtype]::oid[])
      AND NOT EXISTS (SELECT FROM pg_depend AS e WHERE e.classid = 'pg_proc'::regclass AND e.objid = p.oid
                      AND e.deptype = 'e');
    IF listed IS NOT NULL THEN
        RAISE NOTICE 'functions that name the changed tables also name integer types' USING
            DETAIL = listed,
            HINT = 'Where a parameter, variable or cast of theirs holds an ID, make it bigint.';
    END IF;
END;
$$;

-- Names the publications of the tables that are to be rewritten, and the transactions with snapshots before that.
CREATE FUNCTION snowflake_internal.attach_tell_readers(scope snowflake_internal.attach_member[]) RETURNS void
    LANGUAGE plpgsql STABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    listed text;
    statements text;
BEGIN
    IF NOT EXISTS (SELECT FROM unnest(scope) AS s WHERE s.is_narrow) THEN
        RETURN;
    END IF;
    SELECT string_agg(DISTINCT format('publication %I has table %s', p.pubname, s.tbl) COLLATE "C", E'\n'),
           string_agg(DISTINCT format('ALTER TABLE %s ALTER COLUMN %I TYPE bigint;', s.tbl, s.column_name)
                      COLLATE "C", E'\n')
    INTO listed, statements
    FROM unnest(scope) AS s
    JOIN pg_class AS c ON c.oid = s.tbl
    JOIN pg_publication AS p ON p.puballtables
        OR EXISTS (SELECT FROM pg_publication_rel AS r WHERE r.prpubid = p.oid AND r.prrelid = s.tbl)
        OR EXISTS (SELECT FROM pg_publication_namespace AS r WHERE r.pnpubid = p.oid AND r.pnnspid = c.relnamespace)
    WHERE s.is_narrow AND c.relpersistence = 'p';
    IF listed IS NOT NULL THEN
        RAISE NOTICE 'a subscription whose columns are integer stops at the first ID' USING
            DETAIL = listed,
            HINT = E'On each subscriber, before an ID is inserted here:\n' || statements;
    END IF;

    -- The rewritten rows have this transaction as their xmin. Our own snapshot is that of the call.
    SELECT string_agg(concat_ws(', ', format('process %s of role %s', a.pid, a.usesysid::regrole),
                                'since ' || date_trunc('second', a.xact_start)), E'\n' ORDER BY a.pid) INTO listed
    FROM pg_stat_activity AS a
    JOIN pg_stat_activity AS o ON o.pid = pg_backend_pid() AND o.datid = a.datid
    WHERE a.pid <> o.pid AND a.usesysid <> 0 AND age(a.backend_xmin) >= age(o.backend_xmin);
    IF listed IS NOT NULL THEN
        RAISE NOTICE 'transactions with older snapshots will see no rows in the rewritten tables, without an error' USING
            DETAIL = listed,
            HINT = 'If they may still read these tables, roll back, and attach when they have ended.';
    END IF;
END;
$$;
-- Steps of snowflake_attach(): the change itself.

-- The change itself: types, NOT NULL and DEFAULT, with a NOTICE before and after each rewriting, and one about the sessions that must reconnect.
CREATE FUNCTION snowflake_internal.attach_alter(
        scope snowflake_internal.attach_member[], default_text text, validate boolean) RETURNS void
    LANGUAGE plpgsql VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    step record;
    started timestamptz;
    rewritten text;
    additions text[] := '{}';
    addition text;
    unchecked text;
BEGIN
    -- ALTER TABLE would check a foreign key each time one of its two tables is rewritten. A role that does not own the
    -- referring table leaves it to that. A key of a partitioned table can be NOT VALID only in PostgreSQL 18 and later.
    FOR step IN
        SELECT f.conrelid::regclass AS tbl, f.conname, pg_get_constraintdef(f.oid) AS definition,
               obj_description(f.oid, 'pg_constraint') AS comment,
               NOT validate AND f.convalidated AND c.relkind = 'r' AND r.relkind = 'r' AS is_left
        FROM snowflake_internal.attach_keys(scope) AS f
        JOIN pg_class AS c ON c.oid = f.conrelid
        JOIN pg_class AS r ON r.oid = f.confrelid
        WHERE f.conparentid = 0 AND pg_has_role(c.relowner, 'USAGE')
        ORDER BY f.oid
    LOOP
        EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', step.tbl, step.conname);
        additions := additions
            || format('ALTER TABLE %s ADD CONSTRAINT %I %s%s', step.tbl, step.conname, step.definition,
                      CASE WHEN step.is_left THEN ' NOT VALID' END)
            || format('COMMENT ON CONSTRAINT %I ON %s IS %L', step.conname, step.tbl, step.comment);
        IF step.is_left THEN
            unchecked := concat_ws(E'\n', unchecked, format('ALTER TABLE %s VALIDATE CONSTRAINT %I;', step.tbl, step.conname));
        END IF;
    END LOOP;
    -- One ALTER TABLE for each tree of tables, with all its columns in it, so that each table is written once.
    FOR step IN
        SELECT s.root,
               string_agg(DISTINCT format('ALTER COLUMN %I TYPE bigint', s.column_name) COLLATE "C", ', ')
                   FILTER (WHERE s.is_narrow) AS widening,
               string_agg(DISTINCT format('ALTER COLUMN %1$I SET NOT NULL, ALTER COLUMN %1$I SET DEFAULT %2$s',
                                          s.column_name, default_text), ', ')
                   FILTER (WHERE s.is_attached) AS attaching,
               (SELECT CASE WHEN count(*) = 0 THEN 'no partitions'
                            ELSE format('%s%s, %s', CASE WHEN count(*) > 1 THEN format('%s tables, ', count(*)) END,
                                        pg_size_pretty(sum(pg_table_size(c.oid))),
                                        CASE WHEN min(c.reltuples) < 0 THEN 'never analyzed'
                                             ELSE format('about %s rows', sum(c.reltuples)::bigint) END) END
                FROM pg_class AS c
                WHERE c.relkind = 'r'
                    AND c.oid IN (SELECT m.tbl FROM unnest(scope) AS m WHERE m.root = s.root AND m.is_narrow)) AS size
        FROM unnest(scope) AS s
        WHERE s.is_attached OR s.is_narrow
        GROUP BY s.root
        ORDER BY s.root
    LOOP
        started := clock_timestamp();
        IF step.widening IS NOT NULL THEN
            RAISE NOTICE 'rewriting table %: %', step.root, step.size;
        END IF;
        EXECUTE format('ALTER TABLE %s %s', step.root, concat_ws(', ', step.widening, step.attaching));
        IF step.widening IS NOT NULL THEN
            RAISE NOTICE 'table % rewritten in % s', step.root,
                round(extract(epoch FROM clock_timestamp() - started), 1);
            rewritten := concat_ws(', ', rewritten, step.root::text);
        END IF;
    END LOOP;
    FOREACH addition IN ARRAY additions LOOP
        EXECUTE addition;
    END LOOP;
    IF unchecked IS NOT NULL THEN
        RAISE NOTICE 'foreign keys are checked for new rows only, until they are validated' USING
            HINT = E'After the commit, while clients read and write:\n' || unchecked;
    END IF;
    IF rewritten IS NOT NULL THEN
        RAISE NOTICE 'open sessions can fail on the changed columns until they reconnect' USING
            DETAIL = 'A PL/pgSQL function that has read one ends with "type of parameter ... '
                     'does not match that when preparing the plan", '
                     'and a prepared SELECT with "cached plan must not change result type".',
            HINT = format('After the commit: ANALYZE %s; and reconnect.', rewritten);
    END IF;
END;
$$;
-- Partitions by time of a table that is partitioned by RANGE of its ID. The IDs of a partition are an int8range: without
-- a lower bound it is FROM (MINVALUE), without an upper one TO (MAXVALUE), and NULL is the default partition.

-- snowflake_create_partitions('schema.table', '2024-01-01', '2025-01-01', '1 month' [, epoch_ms])
--
--   22004, 22023   NULL; no time to make partitions for, or a step that is not positive, of one kind and whole seconds
--   22008          no ID is of that time
--   42501          not the owner of the table
--   42809, 42P17   not partitioned by RANGE of one bigint column; a partition overlaps
--   42P07, 42622   the name of a new partition is taken, or too long
--   55000          the epoch is not known, or not that of the DEFAULT
--   54000          more than 10,000 partitions
--   23514          the default partition holds rows of a new one
CREATE FUNCTION snowflake_create_partitions(
        parent regclass, from_ts timestamptz, to_ts timestamptz, step interval, epoch_ms bigint DEFAULT NULL)
    RETURNS SETOF regclass
    LANGUAGE plpgsql VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    key CONSTANT name := snowflake_internal.partition_key(parent);
    arguments CONSTANT text := concat_ws(', ', quote_literal(parent::text), quote_literal(from_ts::text),
                                         quote_literal(to_ts::text), quote_literal(step::text),
                                         'epoch_ms => ' || epoch_ms); -- of this call, for hints
    epoch bigint;
    proven regclass;
    new record;
BEGIN
    epoch := snowflake_internal.partition_epoch(parent, key, epoch_ms);
    PERFORM snowflake_internal.partition_require_period(from_ts, to_ts, step, epoch);

    -- As ATTACH PARTITION does: rows are read and written meanwhile, and another call for the table waits.
    EXECUTE format('LOCK TABLE ONLY %s IN SHARE UPDATE EXCLUSIVE MODE', parent);
    proven := snowflake_internal.partition_prove_default(parent, key, (
        SELECT int8range(min(lower(s.ids)), max(upper(s.ids)))
        FROM snowflake_internal.partition_steps(from_ts, to_ts, step, epoch) AS s
        WHERE NOT EXISTS (SELECT FROM snowflake_internal.partitions(parent) AS p WHERE p.ids = s.ids)), arguments);
    FOR new IN
        SELECT s.*, p.partition AS present, p.ids AS present_ids
        FROM snowflake_internal.partition_steps(from_ts, to_ts, step, epoch) AS s
        LEFT JOIN snowflake_internal.partitions(parent) AS p ON p.ids && s.ids
        ORDER BY s.from_ts
    LOOP
        IF new.present IS NULL THEN
            RETURN NEXT snowflake_internal.create_partition(parent, new.name, new.ids);
        ELSIF new.present_ids <> new.ids THEN
            RAISE EXCEPTION 'partition % overlaps the time from % to %', new.present, new.from_ts, new.to_ts USING
                ERRCODE = 'invalid_object_definition',
                DETAIL = (SELECT format('It is of the time from %s to %s.', b.from_ts, b.to_ts)
                          FROM snowflake_internal.times_of(new.present_ids, epoch) AS b),
                HINT = 'Begin where it ends, or end where it begins. '
                       'Steps of days and months are those of the time zone of the session.';
        END IF;
    END LOOP;
    IF proven IS NOT NULL THEN
        EXECUTE format('ALTER TABLE %s DROP CONSTRAINT snowflake_create_partitions', proven);
    END IF;
END;
$$;
COMMENT ON FUNCTION snowflake_create_partitions(regclass, timestamptz, timestamptz, interval, bigint) IS
    'makes the partitions of a table that is partitioned by RANGE of its ID: one for each step (months, days, '
    'or hours and less) from from_ts until to_ts is reached, of the epoch of the column''s DEFAULT; '
    'returns those that were not there';

-- snowflake_partition_bounds('schema.partition' [, epoch_ms])
--
--   22004          NULL
--   42809, 42P01   no partition by RANGE of one bigint column; no table
--   55000          the epoch is not known, or not that of the DEFAULT
CREATE FUNCTION snowflake_partition_bounds(
        partition regclass, epoch_ms bigint DEFAULT NULL, OUT from_ts timestamptz, OUT to_ts timestamptz)
    LANGUAGE plpgsql STABLE CALLED ON NULL INPUT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    parent regclass;
    epoch bigint;
BEGIN
    SELECT i.inhparent INTO parent
    FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
    WHERE c.oid = partition AND c.relispartition;
    IF NOT FOUND THEN
        RAISE EXCEPTION '% is not a partition', coalesce(partition::text, 'NULL') USING
            ERRCODE = 'wrong_object_type',
            HINT = 'Give a partition of a table that is partitioned by RANGE of its ID.';
    END IF;
    epoch := snowflake_internal.partition_epoch(parent, snowflake_internal.partition_key(parent), epoch_ms);
    SELECT b.from_ts, b.to_ts INTO from_ts, to_ts
    FROM snowflake_internal.partitions(parent) AS p, snowflake_internal.times_of(p.ids, epoch) AS b
    WHERE p.partition = snowflake_partition_bounds.partition;
END;
$$;
COMMENT ON FUNCTION snowflake_partition_bounds(regclass, bigint) IS
    'the time of a partition''s IDs, [from_ts, to_ts): -infinity and infinity where it has no bound, '
    'NULL of a default partition';

-- The column that a table is partitioned by; an error if that is not the RANGE of one bigint column.
CREATE FUNCTION snowflake_internal.partition_key(parent regclass) RETURNS name
    LANGUAGE plpgsql STABLE CALLED ON NULL INPUT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    target record;
BEGIN
    IF parent IS NULL THEN
        RAISE EXCEPTION 'the table of snowflake_create_partitions() must not be null' USING
            ERRCODE = 'null_value_not_allowed',
            HINT = format('SELECT %ssnowflake_create_partitions(''schema.table'', ''2024-01-01'', ''2025-01-01'', ''1 month'');',
                          snowflake_internal.prefix());
    END IF;
    SELECT k.partstrat, k.partnatts, a.attname, t.typoutput,
           CASE WHEN k.partnatts = 1 THEN format_type(a.atttypid, a.atttypmod) END AS type INTO target
    FROM pg_class AS c
    LEFT JOIN pg_partitioned_table AS k ON k.partrelid = c.oid
    LEFT JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = k.partattrs[0] AND a.attnum > 0 -- 0: an expression
    LEFT JOIN pg_type AS t ON t.oid = a.atttypid
    WHERE c.oid = parent;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'table with OID % does not exist', parent::oid USING
            ERRCODE = 'undefined_table',
            HINT = 'Give a table by its name: ''schema.table''::regclass.';
    ELSIF target.partstrat = 'r' AND target.partnatts = 1
          AND target.typoutput = 'int8out'::regproc THEN -- or a domain over bigint
        RETURN target.attname;
    END IF;
    RAISE EXCEPTION '% is not partitioned by RANGE of one bigint column',
        pg_describe_object('pg_class'::regclass, parent, 0) USING
        ERRCODE = 'wrong_object_type',
        DETAIL = coalesce('Its partition key is ' || pg_get_partkeydef(parent)
                          || coalesce(', of type ' || target.type, '') || '.',
                          'It has no partition key.'),
        HINT = 'CREATE TABLE ... (id bigint PRIMARY KEY, ...) PARTITION BY RANGE (id);';
END;
$$;

-- The epoch of a column's IDs: that of its DEFAULT, or epoch_ms where it does not tell; an error if they differ.
CREATE FUNCTION snowflake_internal.partition_epoch(parent regclass, key name, epoch_ms bigint) RETURNS bigint
    LANGUAGE plpgsql STABLE CALLED ON NULL INPUT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    described CONSTANT text := format('column %I of table %s', key, parent);
    made bigint[]; -- the epochs of the DEFAULT; NULL: one that is no constant
    known bigint[];
BEGIN
    -- A row that is inserted into a table gets the DEFAULT of that table, and not that of its partition.
    SELECT array_agg(DISTINCT k.epoch_ms) INTO made
    FROM pg_partition_ancestors(parent) AS t(tbl)
    JOIN pg_attribute AS a ON a.attrelid = t.tbl AND a.attname = key
    CROSS JOIN LATERAL snowflake_internal.call_of('pg_class'::regclass::oid, t.tbl::oid, a.attnum::integer) AS k;

    known := array_remove(made, NULL);
    IF cardinality(known) > 1 THEN
        RAISE EXCEPTION '% makes IDs of several epochs', described USING
            ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = format('They are %s; the bounds of a partition are of one.', array_to_string(known, ', ')),
            HINT = format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT ...', pg_partition_root(parent), key);
    ELSIF known[1] <> epoch_ms THEN
        RAISE EXCEPTION '% makes IDs of another epoch than epoch_ms %', described, epoch_ms USING
            ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = format('Its DEFAULT has epoch_ms %s.', known[1]),
            HINT = 'Leave epoch_ms out.';
    ELSIF epoch_ms IS NULL AND (made IS NULL OR cardinality(known) < cardinality(made)) THEN
        RAISE EXCEPTION 'the epoch of % is not known', described USING
            ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = CASE WHEN made IS NULL THEN 'Its DEFAULT makes no IDs.'
                          ELSE 'The epoch_ms of its DEFAULT is no constant.' END,
            HINT = concat_ws(' ',
                             format('Give the epoch of its IDs, for example epoch_ms => %s.', snowflake_internal.default_epoch()),
                             CASE WHEN made IS NULL
                                 THEN format('If they shall be made here: SELECT %ssnowflake_attach(%L, %L);', snowflake_internal.prefix(),
                                             pg_partition_root(parent), key) END);
    END IF;
    RETURN coalesce(epoch_ms, known[1]);
END;
$$;
-- Steps of snowflake_create_partitions(): which partitions a table has, which it is to get, and making one.

-- The partitions of a table that is partitioned by RANGE of a bigint, and their IDs; NULL: the default partition.
CREATE FUNCTION snowflake_internal.partitions(parent regclass) RETURNS TABLE (partition regclass, ids int8range)
    LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
SELECT p.oid, CASE WHEN b.found IS NOT NULL THEN int8range(nullif(btrim(b.found[1], ''''), 'MINVALUE')::bigint,
                                                           nullif(btrim(b.found[2], ''''), 'MAXVALUE')::bigint) END
-- OFFSET 0: pg_get_expr() locks the partition, and could be called for those of other tables otherwise.
FROM (SELECT c.oid, c.relpartbound FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
      WHERE i.inhparent = parent OFFSET 0) AS p
CROSS JOIN LATERAL regexp_match(pg_get_expr(p.relpartbound, p.oid),
                                '^FOR VALUES FROM \((.*)\) TO \((.*)\)$') AS b(found)
$$;

-- The time in which IDs are made.
CREATE FUNCTION snowflake_internal.times_of(ids int8range, epoch_ms bigint, OUT from_ts timestamptz,
                                            OUT to_ts timestamptz)
    LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
-- No ID is negative.
SELECT CASE WHEN lower($1) >= 0 THEN snowflake_internal.time_of(lower($1), $2) ELSE '-infinity' END,
       CASE WHEN upper_inf($1) THEN 'infinity'
            WHEN upper($1) >= 0 THEN snowflake_internal.time_of(upper($1), $2) ELSE '-infinity' END
$$;

-- Refuses times and steps that no partitions can be made for, and too many of them.
CREATE FUNCTION snowflake_internal.partition_require_period(from_ts timestamptz, to_ts timestamptz, step interval,
                                                            epoch_ms bigint)
    RETURNS void LANGUAGE plpgsql STABLE CALLED ON NULL INPUT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    months integer;
    days integer;
    rest interval;
    first_ts CONSTANT timestamptz := snowflake_internal.time_of(0::bigint, epoch_ms);
    last_ts CONSTANT timestamptz := snowflake_internal.time_of(9223372036854775807, epoch_ms);
BEGIN
    IF from_ts IS NULL OR to_ts IS NULL OR step IS NULL THEN
        RAISE EXCEPTION 'from_ts, to_ts and step of snowflake_create_partitions() must not be null' USING
            ERRCODE = 'null_value_not_allowed',
            HINT = format('SELECT %ssnowflake_create_partitions(''schema.table'', ''2024-01-01'', ''2025-01-01'', ''1 month'');',
                          snowflake_internal.prefix());
    ELSIF NOT isfinite(from_ts) OR NOT isfinite(to_ts) OR from_ts >= to_ts THEN
        RAISE EXCEPTION 'there is no time from % to %', from_ts, to_ts USING ERRCODE = 'invalid_parameter_value',
            DETAIL = 'from_ts must be before to_ts, and both must be finite.',
            HINT = 'For older or younger rows, make a partition FROM (MINVALUE) or TO (MAXVALUE) yourself.';
    ELSIF date_trunc('second', from_ts) <> from_ts THEN
        RAISE EXCEPTION 'from_ts % is no full second', from_ts USING ERRCODE = 'invalid_parameter_value',
            DETAIL = 'The first partition begins at from_ts.',
            HINT = 'Round it down: date_trunc(''month'', now()), for example.';
    END IF;
    IF isfinite(step) THEN
        months := extract(year FROM step) * 12 + extract(month FROM step);
        days := extract(day FROM step);
        rest := step - make_interval(months => months, days => days);
    END IF;
    -- A month and a day have no length of their own, so a mixture is not a step that the name of a partition tells.
    IF NOT isfinite(step) OR months < 0 OR days < 0 OR rest < interval '0' OR date_trunc('second', rest) <> rest
       OR (months > 0)::integer + (days > 0)::integer + (rest > interval '0')::integer <> 1 THEN
        RAISE EXCEPTION 'step % makes no partitions', step USING ERRCODE = 'invalid_parameter_value',
            DETAIL = 'A step is a number of months (and years), or of days (and weeks), '
                     'or of full seconds (and hours), greater than 0.',
            HINT = 'For example interval ''1 month'', interval ''7 days'' or interval ''6 hours''.';
    END IF;

    IF from_ts + step <= first_ts OR to_ts > last_ts THEN
        RAISE EXCEPTION 'the time from % to % is not within the epoch', from_ts, to_ts USING
            ERRCODE = 'datetime_field_overflow',
            DETAIL = format('With epoch_ms %s the first ID is of %s, and the last one of %s.',
                            epoch_ms, first_ts, last_ts),
            HINT = 'Give times between these two, and epoch_ms in milliseconds.';
    -- Steps of a year and more are few, because an epoch has 69 years. Many of them could be no interval.
    ELSIF step < interval '1 year' AND from_ts + 10000 * step < to_ts THEN
        RAISE EXCEPTION 'more than 10000 partitions from % to %', from_ts, to_ts USING
            ERRCODE = 'program_limit_exceeded',
            DETAIL = format('With the step %s the first 10000 end at %s.', step, from_ts + 10000 * step),
            HINT = 'Take a longer step, or make them in several calls.';
    END IF;
END;
$$;

-- The steps from first_ts until last_ts is reached: their times, IDs and ends of names, without empty ones.
CREATE FUNCTION snowflake_internal.partition_steps(
        first_ts timestamptz, last_ts timestamptz, step interval, epoch_ms bigint,
        OUT from_ts timestamptz, OUT to_ts timestamptz, OUT ids int8range, OUT name text) RETURNS SETOF record
    LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    n integer := 0;
BEGIN
    -- Each step is counted from the first one: a month after January 31 is February 29, two are March 31.
    to_ts := first_ts;
    WHILE to_ts < last_ts LOOP
        from_ts := to_ts;
        n := n + 1;
        to_ts := first_ts + n * step;
        -- A day that a time zone has left out has no length.
        IF from_ts < to_ts THEN
            ids := int8range(snowflake_internal.min_id(from_ts, epoch_ms),
                             snowflake_internal.min_id(to_ts, epoch_ms));
            -- As exact as the step and the time need it, in the time zone of the session: 2024, 2024_05, 2024_05_17,
            -- 2024_05_17_0800. Of an hour that a time zone has twice, the first is named in UTC.
            name := CASE WHEN from_ts::timestamp::timestamptz <> from_ts
                             THEN to_char(from_ts AT TIME ZONE 'UTC', 'YYYY_MM_DD_HH24MISS"_utc"')
                         ELSE to_char(from_ts, CASE
                         WHEN date_trunc('minute', from_ts) <> from_ts THEN 'YYYY_MM_DD_HH24MISS'
                         WHEN date_trunc('day', from_ts) <> from_ts OR step < interval '1 day' THEN 'YYYY_MM_DD_HH24MI'
                         WHEN date_trunc('month', from_ts) <> from_ts OR step < interval '1 month' THEN 'YYYY_MM_DD'
                         WHEN date_trunc('year', from_ts) <> from_ts OR step < interval '1 year' THEN 'YYYY_MM'
                         ELSE 'YYYY' END) END;
            RETURN NEXT;
        END IF;
    END LOOP;
END;
$$;

-- The default partition, with a CHECK constraint by which it has no row of the new partitions, and an error with the
-- statements that move such rows. Without the constraint ATTACH PARTITION reads all rows for each new partition. NULL: no
-- constraint was made. arguments are for the hint.
CREATE FUNCTION snowflake_internal.partition_prove_default(parent regclass, key name, ids int8range, arguments text)
    RETURNS regclass LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    other CONSTANT regclass := (SELECT nullif(k.partdefid, 0) FROM pg_partitioned_table AS k
                                WHERE k.partrelid = parent);
    condition CONSTANT text := format('%1$I >= %2$s AND %1$I < %3$s', key, lower(ids), upper(ids));
    columns text;
BEGIN
    -- ALTER TABLE refuses tables of other owners, and believes a constraint of a foreign table.
    IF other IS NULL
       OR EXISTS (SELECT FROM pg_partition_tree(other) AS t JOIN pg_class AS c ON c.oid = t.relid
                  WHERE c.relkind NOT IN ('r', 'p') OR NOT pg_has_role(c.relowner, 'USAGE')) THEN
        RETURN NULL;
    END IF;
    EXECUTE format('ALTER TABLE %1$s ADD CONSTRAINT snowflake_create_partitions CHECK (%2$I < %3$s OR %2$I >= %4$s)',
                   other, key, lower(ids), upper(ids));
    RETURN other;
EXCEPTION
WHEN object_in_use THEN
    RETURN NULL; -- this transaction has deferred triggers to fire for its rows
WHEN check_violation THEN
    SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) INTO columns
    FROM pg_attribute AS a
    WHERE a.attrelid = parent AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '';
    RAISE EXCEPTION 'the default partition % holds rows of the new partitions', other USING ERRCODE = 'check_violation',
        DETAIL = format('They are those of SELECT * FROM %s WHERE %s.', other, condition),
        HINT = concat_ws(E'\n', 'Move them:', 'BEGIN;',
            format('ALTER TABLE %s DETACH PARTITION %s;', parent, other),
            format('SELECT %ssnowflake_create_partitions(%s);', snowflake_internal.prefix(), arguments),
            format('WITH moved AS (DELETE FROM %s WHERE %s RETURNING %s) '
                   'INSERT INTO %s (%3$s) SELECT %3$s FROM moved;',
                   other, condition, columns, parent),
            format('ALTER TABLE %s ATTACH PARTITION %s DEFAULT;', parent, other),
            'COMMIT;');
END;
$$;

-- Makes a partition of these IDs, with the owner, the access method and the tablespace of its parent.
CREATE FUNCTION snowflake_internal.create_partition(parent regclass, suffix text, ids int8range) RETURNS regclass
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    described CONSTANT pg_class := (SELECT c FROM pg_class AS c WHERE c.oid = parent);
    relname CONSTANT text := format('%s_%s', described.relname, suffix);
    partition CONSTANT text := format('%s.%I', described.relnamespace::regnamespace, relname);
    bounds CONSTANT text := format('FOR VALUES FROM (%s) TO (%s)', lower(ids), upper(ids));
BEGIN
    -- The server would cut it, and two partitions could get the same name.
    IF octet_length(relname) > current_setting('max_identifier_length')::integer THEN
        RAISE EXCEPTION 'the name % is too long', quote_ident(relname) USING ERRCODE = 'name_too_long',
            DETAIL = format('It has %s bytes; a name has %s at most.', octet_length(relname),
                            current_setting('max_identifier_length')),
            HINT = format('Make the partition under a shorter name: CREATE TABLE ... PARTITION OF %s %s; '
                          'or rename the table.', parent, bounds);
    END IF;
    -- CREATE TABLE ... PARTITION OF would lock the parent against all others. LIKE copies the same properties;
    -- indexes, foreign keys, triggers and identity come with ATTACH.
    EXECUTE format('CREATE TABLE %s (LIKE %s INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING GENERATED '
                   'INCLUDING STORAGE INCLUDING COMPRESSION)%s%s',
                   partition, parent,
                   (SELECT format(' USING %I', m.amname) FROM pg_am AS m WHERE m.oid = described.relam),
                   (SELECT format(' TABLESPACE %I', t.spcname) FROM pg_tablespace AS t
                    WHERE t.oid = described.reltablespace));
    IF described.relowner <> quote_ident(current_user)::regrole THEN
        EXECUTE format('ALTER TABLE %s OWNER TO %s', partition, described.relowner::regrole);
    END IF;
    EXECUTE format('ALTER TABLE %s ATTACH PARTITION %s %s', parent, partition, bounds);
    RETURN partition;
END;
$$;
-- Problems in a database full of shards: a function for each topic, here and in the next files, and snowflake_check()
-- over all of them. None waits for a lock, or runs code of the objects that it looks at.

-- The shards that snowflake_next_id() without arguments makes IDs of: of this session, the database and its roles.
CREATE FUNCTION snowflake_internal.shard_settings(OUT name text, OUT shard integer) RETURNS SETOF record
    LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
-- ALTER DATABASE and ALTER ROLE take any text where the library is not loaded.
SELECT s.name, substring(s.value, '^[0-9]{1,4}$')::integer
FROM (SELECT 'snowflake.shard' AS name, current_setting('snowflake.shard', true) AS value
      UNION
      SELECT concat('snowflake.shard',
                    CASE WHEN d.setrole <> 0 THEN format(' of role %I', pg_get_userbyid(d.setrole)) END),
             split_part(c, '=', 2)
      FROM pg_db_role_setting AS d CROSS JOIN unnest(d.setconfig) AS c
      WHERE d.setdatabase IN (0, (SELECT b.oid FROM pg_database AS b WHERE b.datname = current_database()))
        AND starts_with(c, 'snowflake.shard=')) AS s
$$;

CREATE TYPE snowflake_internal.finding AS (severity text, object text, problem text, hint text);

-- The calls that are checked, read once for all checks.
-- Citus makes a table for each shard of a distributed table, with the same DEFAULTs. Their rows come with their IDs.
-- Temporary objects of other sessions end with these, and any role may make them.
CREATE FUNCTION snowflake_internal.checked_calls() RETURNS snowflake_internal.call[]
    LANGUAGE plpgsql STABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    calls snowflake_internal.call[];
BEGIN
    EXECUTE 'SELECT array_agg(k) FROM snowflake_internal.calls() AS k WHERE pg_is_other_temp_schema(k.schema) IS NOT TRUE'
        || CASE WHEN to_regprocedure('pg_catalog.relation_is_a_known_shard(regclass)') IS NOT NULL
           THEN ' AND (k.classid <> ''pg_class''::regclass OR NOT pg_catalog.relation_is_a_known_shard(k.objid))' ELSE '' END
        INTO calls;
    RETURN calls;
END;
$$;

-- unnest(), for which the planner expects 10 rows. With SET the function is not inlined.
CREATE FUNCTION snowflake_internal.rows_of(calls snowflake_internal.call[]) RETURNS SETOF snowflake_internal.call
    LANGUAGE sql IMMUTABLE PARALLEL SAFE ROWS 10000 SET search_path = pg_catalog, pg_temp
AS 'SELECT * FROM unnest($1)';

-- Numbers that two schemas use, or a schema and the setting snowflake.shard; numbers that are no shard.
CREATE FUNCTION snowflake_internal.check_shards(calls snowflake_internal.call[]) RETURNS SETOF snowflake_internal.finding
    LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
WITH shards AS MATERIALIZED (
    SELECT k.shard, n.oid AS schema_oid, quote_ident(n.nspname) AS schema, k.seq, k.classid, k.objid, k.objsubid
    FROM snowflake_internal.rows_of($1) AS k JOIN pg_namespace AS n ON n.oid = k.schema
    WHERE k.is_direct AND k.shard IS NOT NULL
      AND n.nspname !~ '^pg_temp_' -- a temporary copy of a table has its DEFAULTs, too
), twice AS (
    SELECT shard FROM shards GROUP BY shard HAVING min(schema_oid) <> max(schema_oid)
)
SELECT 'error', format('shard %s', shard),
       format('schemas %s make IDs of the same shard', string_agg(DISTINCT schema COLLATE "C", ', ')),
       'Give each schema a number of its own; until then both schemas can make the same IDs.'
FROM shards AS s
-- One sequence repeats no ID: without the objects of other schemas that draw from a sequence of the shard's own.
WHERE shard IN (SELECT shard FROM twice)
  AND NOT EXISTS (SELECT FROM shards AS o JOIN pg_class AS c ON c.oid = o.seq AND c.relnamespace = o.schema_oid
                  WHERE o.shard = s.shard AND o.seq = s.seq AND o.schema_oid <> s.schema_oid)
GROUP BY shard HAVING count(DISTINCT schema) > 1
UNION ALL
SELECT 'error', (pg_identify_object(classid, objid, objsubid)).identity, format('shard %s is out of range', shard),
       'A shard number is 0 to 8191.'
FROM shards WHERE shard NOT BETWEEN 0 AND 8191
UNION ALL
SELECT 'error', format('setting %s', s.name),
       format('it is %s, the shard of schema %s', s.shard, string_agg(DISTINCT k.schema COLLATE "C", ', ')),
       format('snowflake_next_id() and the schema make the same IDs. Set a number that SELECT shard FROM %ssnowflake_shards '
              'does not show.', snowflake_internal.prefix())
FROM snowflake_internal.shard_settings() AS s JOIN shards AS k USING (shard)
GROUP BY s.name, s.shard
$$;

-- DEFAULTs, functions and domains that make no IDs, or others than their schema's.
CREATE FUNCTION snowflake_internal.check_columns(calls snowflake_internal.call[]) RETURNS SETOF snowflake_internal.finding
    LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
WITH calls AS MATERIALIZED (SELECT * FROM snowflake_internal.rows_of($1)), strange AS MATERIALIZED (
    SELECT k.*, f.schema AS other
    FROM calls AS k
    LEFT JOIN pg_class AS s ON s.oid = k.seq AND s.relkind = 'S'
    CROSS JOIN LATERAL (SELECT CASE WHEN k.home <> k.schema THEN k.home ELSE s.relnamespace END::regnamespace) AS f(schema)
    WHERE k.classid = 'pg_class'::regclass AND f.schema <> k.schema
      AND k.seq IS DISTINCT FROM (SELECT snowflake_internal.id_seq())
)
SELECT DISTINCT 'error', (pg_identify_object(k.classid, k.objid, k.objsubid)).identity,
       format('the column is of type %s', a.atttypid::regtype),
       'An ID is a bigint: ALTER TABLE ... ALTER COLUMN ... TYPE bigint.'
FROM calls AS k
JOIN pg_attribute AS a ON k.classid = 'pg_class'::regclass AND a.attrelid = k.objid AND a.attnum = k.objsubid
JOIN pg_type AS t ON t.oid = a.atttypid
-- A domain has the output function of its type. Text and numeric hold every ID, floating point rounds it.
WHERE t.typoutput IN ('int2out'::regproc, 'int4out'::regproc, 'float4out'::regproc, 'float8out'::regproc)
UNION ALL
SELECT 'error', (pg_identify_object(classid, objid, objsubid)).identity,
       format('it draws from %s, which is no sequence', seq::regclass),
       'No IDs are made. Name a sequence: snowflake_next_id(5, ''schema.sequence'').'
FROM calls
WHERE is_direct AND seq IS NOT NULL AND CASE WHEN NOT EXISTS (SELECT FROM pg_sequence AS s WHERE s.seqrelid = seq)
      -- A sequence may be younger than the snapshot.
      THEN (pg_identify_object('pg_class'::regclass, seq, 0)).type IS DISTINCT FROM 'sequence' END
UNION ALL
SELECT DISTINCT 'warning', (pg_identify_object(classid, objid, objsubid)).identity,
       'its shard, sequence or epoch is no constant, and cannot be checked',
       'Write them as literals: snowflake_next_id(5, ''schema.sequence'').'
FROM calls
WHERE is_direct
  AND (seq IS NULL OR epoch_ms IS NULL
       -- snowflake_next_id() has its shard from a setting, and means it
       OR shard IS NULL AND seq <> (SELECT snowflake_internal.id_seq()))
UNION ALL
SELECT 'warning', (pg_identify_object(classid, objid, objsubid)).identity,
       format('it makes IDs of the shards %s', array_to_string(array_agg(DISTINCT shard), ', ')),
       'Give each table and function the shard of its schema alone.'
FROM calls WHERE shard IS NOT NULL
GROUP BY classid, objid, objsubid
-- Not again for each column that calls one such function.
HAVING count(DISTINCT shard) > 1 AND (bool_or(is_direct) OR count(DISTINCT function) > 1)
UNION ALL
SELECT DISTINCT 'warning', (pg_identify_object(k.classid, k.objid, k.objsubid)).identity,
       format('it draws from schema %s: shard %s, sequence %s', k.other, coalesce(k.shard::text, '?'),
              coalesce(k.seq::regclass::text, '?')),
       format('A copy of a table (LIKE) has the DEFAULTs of the other. Set one of its own schema: '
              'ALTER TABLE %s ALTER COLUMN %I SET DEFAULT ...;', t.oid::regclass, a.attname)
FROM strange AS k
JOIN pg_class AS t ON t.oid = k.objid AND t.relpersistence <> 't' AND NOT t.relispartition -- rows come through its parent
JOIN pg_attribute AS a ON a.attrelid = k.objid AND a.attnum = k.objsubid
$$;

-- Sequences that cannot hold a position, are ahead of the clock, or are less durable than their tables; and epochs.
CREATE FUNCTION snowflake_internal.check_sequences(calls snowflake_internal.call[]) RETURNS SETOF snowflake_internal.finding
    LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
WITH calls AS MATERIALIZED (SELECT * FROM snowflake_internal.rows_of($1)), sequences AS MATERIALIZED (
    SELECT s.seqrelid, s.seqtypid, s.seqincrement, s.seqmax, c.relpersistence,
           -- Of a value that is not issued yet, too: RESTART WITH, setval(..., false).
           snowflake_internal.stored_ms(v.last_value, k.epoch_ms)
           - floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS lead
    FROM pg_sequence AS s
    JOIN pg_class AS c ON c.oid = s.seqrelid
    -- A sequence with two epochs is an error of its own.
    JOIN (SELECT seq, min(epoch_ms) AS epoch_ms FROM calls GROUP BY seq) AS k ON k.seq = s.seqrelid
    CROSS JOIN LATERAL snowflake_internal.stored_value(s.seqrelid) AS v
    WHERE snowflake_internal.is_open(s.seqmin, s.seqmax)
      -- The fence of a move or a split sets a sequence to its end.
      AND ((v.last_value = s.seqmax) IS NOT TRUE OR NOT (SELECT snowflake_internal.has_record()))
), settings AS (
    SELECT setting::bigint AS max_drift FROM pg_settings WHERE name = 'snowflake.max_drift'
)
SELECT 'error', format('sequence %s', seq::regclass),
       format('its IDs are made with %s epochs: %s', count(DISTINCT epoch_ms),
              string_agg(DISTINCT epoch_ms::text COLLATE "C", ', ')),
       'Use one epoch_ms with one sequence: IDs of two epochs are not in order, and can be the same.'
FROM calls WHERE seq IS NOT NULL AND epoch_ms IS NOT NULL
GROUP BY seq HAVING count(DISTINCT epoch_ms) > 1
UNION ALL
SELECT DISTINCT 'warning', format('epoch_ms %s', epoch_ms),
       format('its last ID is of %s UTC', (timestamp 'epoch' + (epoch_ms + (1::bigint << 40) - 1) * interval '1 ms')),
       'Less than ten years are left. Plan for new tables with a later epoch_ms.'
FROM calls
WHERE epoch_ms BETWEEN -60000000000000
                   AND extract(epoch FROM clock_timestamp()) * 1000 + 315360000000 - (1::bigint << 40)
UNION ALL
SELECT 'error', format('sequence %s', seqrelid::regclass),
       format('it cannot hold a position: it is %s with INCREMENT %s and MAXVALUE %s', seqtypid::regtype, seqincrement,
              seqmax), snowflake_internal.reshape_hint(seqrelid)
FROM sequences
WHERE NOT snowflake_internal.holds_position(seqtypid, seqincrement, seqmax)
UNION ALL
SELECT 'notice', format('sequence %s', s.seqrelid::regclass),
       format('it makes no IDs on this Citus worker: its MINVALUE %s and MAXVALUE %s are those of a copy', s.seqmin,
              s.seqmax), 'Insert through the coordinator; docs/citus.md says how to insert on every node.'
FROM pg_sequence AS s
WHERE s.seqrelid IN (SELECT seq FROM calls) AND snowflake_internal.is_citus_copy(s.seqmin, s.seqmax)
UNION ALL
SELECT 'error', format('sequence %s', seqrelid::regclass), format('the clock is %s s behind it', lead / 1000),
       'No IDs are made until it has caught up to snowflake.max_drift. Set the clock right. If it is right, '
       'the error of snowflake_next_id() has the statements that set the sequence.'
FROM sequences, settings WHERE max_drift >= 0 AND lead > greatest(max_drift, 2000)
UNION ALL
SELECT 'warning', format('sequence %s', seqrelid::regclass), format('the clock is %s s behind it', lead / 1000),
       'IDs go on from the last one at 1024 a millisecond. Look at the clock.'
FROM sequences, settings WHERE lead > 2000 AND (max_drift < 0 OR lead <= max_drift)
UNION ALL
SELECT 'warning', format('sequence %s', s.seqrelid::regclass), format('it is unlogged, and %s is not',
              string_agg(DISTINCT (pg_identify_object(k.classid, k.objid, k.objsubid)).identity COLLATE "C", ', ')),
       format('ALTER SEQUENCE %s SET LOGGED; after a crash only the clock protects its IDs.', s.seqrelid::regclass)
FROM sequences AS s
JOIN calls AS k ON k.seq = s.seqrelid
JOIN pg_class AS c ON k.classid = 'pg_class'::regclass AND c.oid = k.objid
WHERE s.relpersistence = 'u' AND c.relpersistence = 'p'
GROUP BY s.seqrelid
$$;
-- Problems of snowflake_check(): the IDs that columns hold, and DEFAULTs that count on from one.

-- The largest ID of the shard in the last 1,000 entries of a btree index that begins with the bigint column, if it is
-- of a later millisecond than the sequence's position; NULL also if the caller may not read one of them, and if
-- somebody holds one in ACCESS EXCLUSIVE mode: this does not wait.
CREATE FUNCTION snowflake_internal.id_above(tbl oid, attnum integer, shard integer, seq oid, epoch_ms bigint)
    RETURNS bigint LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'snowflake_id_above';

-- The largest value of a bigint column that a btree index begins with, if nextval() can have returned it, and it is no
-- ID of the shard; NULL as with id_above().
CREATE FUNCTION snowflake_internal.stored_position(tbl oid, attnum integer, shard integer) RETURNS bigint
    LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'snowflake_stored_position';

-- The IDs of a bigint column that are not of the shard, in one table that the caller may read: of all rows if the
-- sample is 0, otherwise of about as many rows and of both ends of an index.
-- For snowflake-shard verify, which a superuser runs on tables of all roles: nothing is planned.
CREATE FUNCTION snowflake_internal.other_ids(tbl oid, attnum integer, shard integer, sample integer, OUT count bigint,
                                             OUT smallest bigint)
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_other_ids';

-- Columns with an index that hold an ID above their sequence: it can come again, if it is ahead of the clock; and
-- columns that hold positions in place of IDs.
CREATE FUNCTION snowflake_internal.check_ids(calls snowflake_internal.call[]) RETURNS SETOF snowflake_internal.finding
    LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
-- An ID of another shard, as replication brings it, cannot come again from this sequence.
WITH compared AS MATERIALIZED (
    SELECT k.objid, k.objsubid, n.shard, k.seq, k.epoch_ms,
           -- Both here: a table is opened once, as the session keeps it for the second look.
           snowflake_internal.id_above(k.objid, k.objsubid, n.shard, s.seqrelid, k.epoch_ms) AS id,
           snowflake_internal.stored_position(k.objid, k.objsubid, k.shard) AS position
    FROM snowflake_internal.rows_of($1) AS k
    CROSS JOIN LATERAL (SELECT k.shard WHERE k.shard IS NOT NULL
                        UNION ALL
                        SELECT DISTINCT g.shard FROM snowflake_internal.shard_settings() AS g
                        WHERE k.shard IS NULL AND k.seq = (SELECT snowflake_internal.id_seq())) AS n
    LEFT JOIN pg_sequence AS s ON s.seqrelid = k.seq AND snowflake_internal.is_open(s.seqmin, s.seqmax)
    WHERE k.classid = 'pg_class'::regclass
), above AS (
    SELECT objid::regclass AS tbl, objsubid, shard, min(id) AS id, min(seq)::regclass AS seq, min(epoch_ms) AS epoch_ms,
           (min(id) >> 23)::numeric + min(epoch_ms) - floor(extract(epoch FROM clock_timestamp()) * 1000) AS lead
    FROM compared
    GROUP BY objid, objsubid, shard
    HAVING bool_and(id IS NOT NULL) -- of several sequences, above all
), settings AS (
    SELECT CASE WHEN min(setting::bigint) >= 0 THEN max(setting::bigint) END AS reach
    FROM pg_settings WHERE name IN ('snowflake.max_drift', 'snowflake.max_lead')
)
SELECT CASE WHEN lead > 0 THEN 'error' ELSE 'notice' END, (pg_identify_object('pg_class'::regclass, tbl, objsubid)).identity,
       format('it holds %s, above sequence %s', id, seq)
       || CASE WHEN lead > 0 THEN format(' and %s ms ahead of the clock', lead) ELSE '' END,
       CASE WHEN lead > reach
            THEN format('New IDs cannot be above it. Give other numbers to the rows of SELECT * FROM %1$s WHERE %2$I > '
                        '%5$ssnowflake_max_id(now(), %3$s) AND %5$ssnowflake_shard(%2$I) = %4$s;', tbl, a.attname,
                        epoch_ms, shard, snowflake_internal.prefix())
            ELSE format('SELECT %ssnowflake_advance(%L, %s%s);', snowflake_internal.prefix(), seq, id,
                        CASE WHEN epoch_ms <> snowflake_internal.default_epoch() THEN format(', %s', epoch_ms) END) END
FROM above JOIN pg_attribute AS a ON a.attrelid = tbl AND a.attnum = objsubid, settings
UNION ALL
SELECT DISTINCT 'warning', (pg_identify_object('pg_class'::regclass, c.objid, c.objsubid)).identity,
       format('it holds %s, which nextval() can have returned: a position of its sequence, and no ID', c.position),
       format('Let clients leave the column to its DEFAULT. SELECT * FROM %s WHERE %I <= %s; shows the rows.',
              c.objid::regclass, a.attname, c.position)
FROM compared AS c JOIN pg_attribute AS a ON a.attrelid = c.objid AND a.attnum = c.objsubid
WHERE c.position IS NOT NULL
$$;

-- Columns whose DEFAULT counts on from an ID: nextval() of a sequence that native IDs were drawn from.
CREATE FUNCTION snowflake_internal.check_defaults(calls snowflake_internal.call[]) RETURNS SETOF snowflake_internal.finding
    LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
WITH calls AS MATERIALIZED (SELECT * FROM snowflake_internal.rows_of($1))
SELECT DISTINCT ON (f.oid) 'error', (pg_identify_object('pg_class'::regclass, c.oid, a.attnum)).identity,
       format('its DEFAULT is nextval() of sequence %s, which holds %s, %s: new values are the numbers after it',
              s.seqrelid::regclass, v.last_value,
              CASE WHEN v.last_value < 1::bigint << 53 THEN 'a position of native IDs' ELSE 'an ID' END),
       format('SELECT %ssnowflake_attach(%s%s);', snowflake_internal.prefix(),
              snowflake_internal.attach_arguments(c.oid, a.attname, NULL, s.seqrelid, nullif(e.epoch_ms, snowflake_internal.default_epoch())),
              CASE WHEN NOT EXISTS (SELECT FROM calls AS k WHERE k.schema = c.relnamespace AND k.is_direct
                                    AND k.shard IS NOT NULL) THEN ', shard => ...' END)
FROM pg_sequence AS s
JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = s.seqrelid
    AND d.classid = 'pg_attrdef'::regclass
JOIN pg_attrdef AS f ON f.oid = d.objid
JOIN pg_class AS c ON c.oid = f.adrelid AND c.relpersistence <> 't'
JOIN pg_attribute AS a ON a.attrelid = f.adrelid AND a.attnum = f.adnum AND a.attinhcount = 0
CROSS JOIN LATERAL snowflake_internal.stored_value(s.seqrelid) AS v
CROSS JOIN (SELECT k.epoch_ms FROM calls AS k WHERE k.epoch_ms IS NOT NULL
            UNION SELECT snowflake_internal.default_epoch()) AS e
WHERE s.seqtypid = 'bigint'::regtype AND snowflake_internal.is_open(s.seqmin, s.seqmax)
  AND s.seqstart < 1::bigint << 45 AND v.last_value >= 1::bigint << 45 -- not large from its start on
  -- nextval() and nothing else. pg_get_expr() would wait for a lock.
  AND f.adbin::text ~ format('^\{(COERCETODOMAIN :arg \{)?FUNCEXPR :funcid %s ', 'nextval(regclass)'::regprocedure::oid)
  -- The extension is younger than 2020. A number of another kind is seldom a time since then.
  AND snowflake_internal.stored_ms(v.last_value, e.epoch_ms)
      BETWEEN 1577836800000 AND extract(epoch FROM clock_timestamp()) * 1000 + 86400000
ORDER BY f.oid, e.epoch_ms <> snowflake_internal.default_epoch(), e.epoch_ms
$$;
-- Problems of snowflake_check(): functions of the PL/pgSQL scheme, relations that the caller may not read. And
-- snowflake_check() itself.

-- Functions that may be those of the PL/pgSQL scheme.
CREATE FUNCTION snowflake_internal.check_functions(calls snowflake_internal.call[]) RETURNS SETOF snowflake_internal.finding
    LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
WITH foreigners AS MATERIALIZED (
    SELECT p.oid, p.proname = 'next_id' AND l.lanname = 'plpgsql' AS is_of_scheme
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
       format('SELECT %ssnowflake_adopt(%L, shard => ...);', snowflake_internal.prefix(), p.oid::regprocedure)
FROM foreigners AS p
LEFT JOIN called AS c ON c.function = p.oid
LEFT JOIN pg_attrdef AS f ON f.oid = c.by_default
WHERE c.function IS NOT NULL OR p.is_of_scheme
$$;

-- The comparisons of the other functions leave out the relations of which the caller may not read all rows.
CREATE FUNCTION snowflake_internal.check_unread(calls snowflake_internal.call[]) RETURNS SETOF snowflake_internal.finding
    LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
WITH calls AS MATERIALIZED (SELECT * FROM snowflake_internal.rows_of($1)),
reader AS (SELECT rolsuper AS may_all FROM pg_roles WHERE rolname = current_user),
unread (schema, oid, relkind, has_policy) AS (
    SELECT c.relnamespace, c.oid, c.relkind, false
    FROM calls AS k
    JOIN pg_sequence AS s ON s.seqrelid = k.seq AND snowflake_internal.is_open(s.seqmin, s.seqmax)
    JOIN pg_class AS c ON c.oid = k.seq
    WHERE NOT (SELECT may_all FROM reader)
      AND CASE c.relkind WHEN 'S' THEN NOT has_sequence_privilege(c.oid, 'SELECT, USAGE') END
    UNION
    SELECT c.relnamespace, c.oid, c.relkind, p.has
    FROM calls AS k
    JOIN pg_class AS c ON k.classid = 'pg_class'::regclass AND c.oid = k.objid AND c.relkind = 'r'
    CROSS JOIN LATERAL (SELECT has_schema_privilege(c.relnamespace, 'USAGE')
                               AND has_column_privilege(c.oid, k.objsubid::smallint, 'SELECT')) AS p (has)
    WHERE NOT (SELECT may_all FROM reader) AND (NOT p.has OR row_security_active(c.oid))
)
SELECT 'warning', format('schema %s', schema::regnamespace),
       format('not looked at: %s %s', CASE WHEN has_policy THEN format('policies hide rows from role %I in', current_user)
                                           ELSE format('role %I may not read', current_user) END,
              string_agg(name, ', ' ORDER BY name)),
       CASE WHEN has_policy THEN 'Call it as the owner of the tables, or as a role with BYPASSRLS.'
            ELSE concat(CASE WHEN bool_or(relkind = 'r') AND NOT has_schema_privilege(schema, 'USAGE')
                             THEN format('GRANT USAGE ON SCHEMA %s TO %I; ', schema::regnamespace, current_user) END,
                        format('GRANT SELECT ON %s TO %I;', string_agg(name, ', ' ORDER BY name), current_user)) END
FROM (SELECT u.*, u.oid::regclass::text COLLATE "C" AS name FROM unread AS u) AS u
GROUP BY schema, has_policy
$$;

CREATE FUNCTION snowflake_check(OUT severity text, OUT object text, OUT problem text, OUT hint text)
    RETURNS SETOF record LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
WITH registry AS MATERIALIZED (SELECT snowflake_internal.checked_calls() AS calls)
SELECT c.*
FROM registry AS r
CROSS JOIN LATERAL (SELECT * FROM snowflake_internal.check_shards(r.calls)
                    UNION ALL SELECT * FROM snowflake_internal.check_columns(r.calls)
                    UNION ALL SELECT * FROM snowflake_internal.check_sequences(r.calls)
                    UNION ALL SELECT * FROM snowflake_internal.check_ids(r.calls)
                    UNION ALL SELECT * FROM snowflake_internal.check_defaults(r.calls)
                    UNION ALL SELECT * FROM snowflake_internal.check_functions(r.calls)
                    UNION ALL SELECT * FROM snowflake_internal.check_unread(r.calls)) AS c
ORDER BY c.severity, c.object COLLATE "C", c.problem COLLATE "C"
$$;
COMMENT ON FUNCTION snowflake_check() IS
    'reports problems of the shards of this database, including future ones: severity (error, warning, notice), object, '
    'problem, and a hint with the remedy; no rows if there are none';
-- In a superuser's schema the command works with the rights of a superuser.
-- How code of a role that is no superuser could run with the rights of this session in a superuser's schema, and the
-- statement that ends it; NULL if not. writes: also by writes.
CREATE FUNCTION snowflake_internal.foreign_code(schema oid, writes boolean, OUT problem text, OUT hint text)
    -- PL/pgSQL keeps a generic plan; planning takes ten times the rest, and the command asks for each statement in each shard.
    LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
BEGIN
WITH RECURSIVE superusers AS (
    -- The owner of the database stands for pg_database_owner, its only member.
    SELECT r.oid, r.rolname FROM pg_roles AS r JOIN pg_database AS d ON d.datname = current_database()
    JOIN pg_roles AS a ON a.oid = CASE r.oid WHEN 'pg_database_owner'::regrole THEN d.datdba ELSE r.oid END
    WHERE a.rolsuper),
superusers_schema AS (
    SELECT n.oid, nspname, nspacl, rolname FROM pg_namespace AS n JOIN superusers AS s ON s.oid = nspowner WHERE n.oid = $1),
contents AS (
    SELECT classid, objid FROM pg_depend JOIN superusers_schema AS n ON n.oid = refobjid
    WHERE refclassid = 'pg_namespace'::regclass),
tables AS (
    SELECT c.oid, relnamespace, relowner, relkind, relacl FROM contents JOIN pg_class AS c ON c.oid = objid
    WHERE classid = 'pg_class'::regclass
    UNION -- SQL that names a table reads and changes its children, too
    SELECT c.oid, c.relnamespace, c.relowner, c.relkind, c.relacl
    FROM tables JOIN pg_inherits ON inhparent = tables.oid JOIN pg_class AS c ON c.oid = inhrelid),
-- An ordinary table of another role is no reason: SQL that names it runs its triggers, as any query of that table does.
owned (owner, object) AS (
    SELECT relowner, pg_describe_object('pg_class'::regclass, oid, 0) FROM tables WHERE relkind IN ('v', 'm', 'f')
    OR EXISTS (SELECT FROM pg_inherits JOIN pg_class AS p ON p.oid = inhparent WHERE inhrelid = tables.oid AND p.relowner <> tables.relowner)
    UNION ALL
    SELECT coalesce(proowner, oprowner, typowner), pg_describe_object(classid, objid, 0) FROM contents
    LEFT JOIN pg_proc AS p ON classid = 'pg_proc'::regclass AND p.oid = objid
    LEFT JOIN pg_operator AS o ON classid = 'pg_operator'::regclass AND o.oid = objid
    LEFT JOIN pg_type AS t ON classid = 'pg_type'::regclass AND t.oid = objid AND typtype = 'd'),
privileges (grantee, does, revoked) AS (
    SELECT grantee, 'may create objects in it', format('CREATE ON SCHEMA %I', nspname)
    FROM superusers_schema CROSS JOIN aclexplode(nspacl) WHERE privilege_type = 'CREATE'
    UNION ALL
    -- A cascade of a foreign key fires triggers of the table that refers.
    SELECT grantee, format('may make %s %s', CASE privilege_type WHEN 'TRIGGER' THEN 'triggers on' ELSE 'keys to' END,
                           pg_describe_object('pg_class'::regclass, tables.oid, 0)),
           format('TRIGGER, REFERENCES ON ALL TABLES IN SCHEMA %s', relnamespace::regnamespace) -- of their columns, too
    FROM tables CROSS JOIN LATERAL (SELECT relacl UNION ALL SELECT attacl FROM pg_attribute WHERE attrelid = tables.oid) AS a (acl)
    CROSS JOIN aclexplode(acl) WHERE writes AND relkind <> 'S' AND privilege_type IN ('TRIGGER', 'REFERENCES')),
fired (owner, object) AS (
    SELECT proowner, pg_describe_object('pg_trigger'::regclass, g.oid, 0)
    FROM tables JOIN pg_trigger AS g ON tgrelid = tables.oid JOIN pg_proc AS p ON p.oid = tgfoid WHERE writes
    UNION ALL
    SELECT c.relowner, pg_describe_object('pg_class'::regclass, c.oid, 0) || ', which refers to it'
    FROM tables JOIN pg_trigger AS g ON tgrelid = tables.oid JOIN pg_class AS c ON c.oid = tgconstrrelid WHERE writes),
reasons (text, hint) AS (
    SELECT format('%s %s', CASE grantee WHEN 0 THEN 'every role' ELSE format('role %I', pg_get_userbyid(grantee)) END, does),
           format('REVOKE %s FROM %s;', revoked,
                  CASE grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END)
    FROM privileges WHERE grantee NOT IN (SELECT oid FROM superusers)
    UNION ALL
    SELECT format('role %I owns %s', pg_get_userbyid(owner), object), NULL
    FROM (TABLE owned UNION ALL TABLE fired) AS o WHERE owner NOT IN (SELECT oid FROM superusers))
SELECT format('schema %I belongs to superuser %I, and %s: code of that role would run with the rights of a superuser',
              nspname, rolname, r.text),
       concat_ws(' Or: ', r.hint, format('ALTER SCHEMA %I OWNER TO ...; gives it to a role that is no superuser.', nspname))
INTO problem, hint
FROM reasons AS r, superusers_schema
WHERE current_setting('is_superuser') = 'on'
ORDER BY r.text LIMIT 1;
END;
$$;
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
-- The rows of a moved table, as snowflake-shard carries them.

-- Inserts rows in a format of COPY, with the rights of the table's owner; returns their number.
CREATE FUNCTION snowflake_internal.copy_rows(tbl regclass, columns text[], format text, rows bytea) RETURNS bigint
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_copy_rows';
REVOKE EXECUTE ON FUNCTION snowflake_internal.copy_rows(regclass, text[], text, bytea) FROM PUBLIC;

-- Whether rows that replication writes are checked by a foreign key, too; for the owner of its table.
CREATE FUNCTION snowflake_internal.fire_key(key oid, always boolean) RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_fire_key';
-- The calls and reads of snowflake-shard, and of bodies in text, in the extension's own schema. Other roles may be allowed to create objects there, or
-- own it, so a name of that schema can lead to an object of theirs. Here each name is bound to its object, by OID.

CREATE FUNCTION snowflake_internal.shards(
        OUT schema oid, OUT shard integer, OUT function oid, OUT seq oid, OUT epoch_ms bigint)
    RETURNS SETOF record LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT n.oid, s.shard, s.function::pg_catalog.oid, s.seq::pg_catalog.oid, s.epoch_ms
    FROM snowflake_shards AS s JOIN pg_catalog.pg_namespace AS n ON n.nspname OPERATOR(pg_catalog.=) s.schema_name;
END;

CREATE FUNCTION snowflake_internal.sequences(OUT seq oid, OUT shard integer, OUT last_id_at timestamptz)
    RETURNS SETOF record LANGUAGE sql VOLATILE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT s.seq::pg_catalog.oid, s.shard, s.last_id_at FROM snowflake_sequences AS s;
END;

-- Those of snowflake-shard verify: errors of snowflake_check(), and relations that it could not read.
CREATE FUNCTION snowflake_internal.findings(OUT severity text, OUT object text, OUT problem text, OUT hint text)
    RETURNS SETOF record LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT * FROM snowflake_check() AS c
    WHERE c.severity OPERATOR(pg_catalog.=) 'error' OR pg_catalog.starts_with(c.problem, 'not looked at: ');
END;

CREATE FUNCTION snowflake_internal.id_seq() RETURNS oid
    LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    RETURN 'snowflake_id_seq'::pg_catalog.regclass::pg_catalog.oid;

CREATE FUNCTION snowflake_internal.settled_id(shard integer, seq regclass, epoch_ms bigint) RETURNS bigint
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_settled_id';

-- Bytes of a relation, by its row of pg_class: the relation is neither opened nor locked.
CREATE FUNCTION snowflake_internal.file_size(tablespace oid, file oid) RETURNS bigint
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'snowflake_file_size';
