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
