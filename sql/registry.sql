-- The catalogue as the registry: which calls are found, in what kind of expression, and what inherits them.
\set SHOW_CONTEXT never
SET client_min_messages = warning;

CREATE SCHEMA reg;
CREATE SEQUENCE reg.s;
CREATE SEQUENCE reg.other;

-- Arguments by name, in any order.
CREATE TABLE reg.named (
    a bigint DEFAULT snowflake_next_id(shard => 5, seq => 'reg.s'),
    b bigint DEFAULT snowflake_next_id(seq => 'reg.s', shard => 5::smallint),
    c bigint DEFAULT snowflake_next_id(5, epoch_ms => 1767225600000, seq => 'reg.other'));
CREATE FUNCTION reg.named() RETURNS bigint LANGUAGE sql RETURN snowflake_next_id(epoch_ms => 1767225600000, shard => 5, seq => 'reg.other');
SELECT column_name, function, shard, seq, epoch_ms FROM snowflake_columns ORDER BY 1;
SELECT * FROM snowflake_shards ORDER BY epoch_ms;
\set VERBOSITY default
SELECT snowflake_create_shard(5, 'elsewhere');
\set VERBOSITY sqlstate

-- Every call of an expression, in arguments of another call and in the default of an argument too; the
-- same call twice is one.
CREATE TABLE reg.several (
    two bigint DEFAULT CASE WHEN random() < 2 THEN snowflake_next_id(6, 'reg.s') ELSE snowflake_next_id(7, 'reg.s', 1767225600000) END,
    nested bigint DEFAULT snowflake_next_id((snowflake_next_id(8, 'reg.s') & 0)::integer, seq => 'reg.other'),
    twice bigint DEFAULT coalesce(snowflake_next_id(6, 'reg.s'), snowflake_next_id(6, 'reg.s')),
    by_setting bigint DEFAULT coalesce(snowflake_next_id(), snowflake_next_id(9, 'reg.s')));
CREATE FUNCTION reg.by_default(id bigint DEFAULT snowflake_next_id(10, 'reg.s')) RETURNS bigint LANGUAGE sql RETURN id;
CREATE FUNCTION reg.both(id bigint DEFAULT reg.by_default()) RETURNS bigint LANGUAGE sql RETURN id + snowflake_next_id(11, 'reg.s');
SELECT column_name, shard, seq, epoch_ms FROM snowflake_columns WHERE table_name = 'several' ORDER BY 1, 2, 3;
SELECT pg_describe_object(classid, objid, 0) AS object, function::regprocedure, shard, is_direct, is_plain
FROM snowflake_internal.calls() WHERE objid IN (SELECT oid FROM pg_proc WHERE pronamespace = 'reg'::regnamespace) ORDER BY 1, 3;
DO $$
DECLARE
    n integer;
BEGIN
    FOR n IN 6..11 LOOP
        BEGIN
            PERFORM snowflake_create_shard(n, 'elsewhere');
            RAISE WARNING 'shard % was free', n;
        EXCEPTION WHEN duplicate_object THEN
            NULL;
        END;
    END LOOP;
END $$;

-- The default of a domain is that of the columns of this type that have no other. A domain over a domain
-- begins with a copy of its default.
CREATE SCHEMA reg_types;
CREATE DOMAIN reg_types.id AS bigint DEFAULT snowflake_next_id(20, 'reg.s');
CREATE DOMAIN reg_types.copied AS reg_types.id;
CREATE DOMAIN reg_types.by_function AS bigint DEFAULT reg.named();
CREATE TYPE reg_types.composite AS (id reg_types.id);
CREATE TABLE reg.domains (
    a reg_types.id,
    b reg_types.copied,
    c reg_types.by_function,
    own_default reg_types.id DEFAULT snowflake_next_id(21, 'reg.s'),
    no_default reg_types.id DEFAULT NULL,
    constant reg_types.id DEFAULT 1,
    generated reg_types.id GENERATED ALWAYS AS (1) STORED,
    list reg_types.id[],
    composite reg_types.composite);
CREATE VIEW reg.domains_view AS SELECT a FROM reg.domains;
INSERT INTO reg.domains DEFAULT VALUES RETURNING snowflake_shard(a) AS a, snowflake_shard(b) AS b, snowflake_shard(c) AS c;
SELECT table_name, column_name, function, shard, seq FROM snowflake_columns WHERE table_name LIKE 'domains%' ORDER BY 1, 2;
SELECT shard, schema_name, function, seq FROM snowflake_shards WHERE schema_name = 'reg_types';
SELECT a.attname, k.function::regprocedure, k.shard, k.is_direct, k.is_plain
FROM pg_attribute AS a, snowflake_internal.call_of('pg_class'::regclass, a.attrelid, a.attnum) AS k
WHERE a.attrelid = 'reg.domains'::regclass ORDER BY a.attnum;
\set VERBOSITY default
SELECT snowflake_create_shard(20, 'elsewhere');
\set VERBOSITY sqlstate
ALTER DOMAIN reg_types.id DROP DEFAULT;
SELECT column_name, shard FROM snowflake_columns WHERE table_name = 'domains' AND shard = 20;

-- A function that is called makes its callers' IDs, at any distance. One object alone says the same.
CREATE FUNCTION reg.f0() RETURNS bigint LANGUAGE sql RETURN snowflake_next_id(30, 'reg.s');
DO $$
BEGIN
    FOR i IN 1..20 LOOP
        EXECUTE format('CREATE FUNCTION reg.f%s() RETURNS bigint LANGUAGE sql RETURN reg.f%s()', i, i - 1);
    END LOOP;
END $$;
CREATE TABLE reg.far (id bigint DEFAULT reg.f20() + snowflake_next_id(31, 'reg.s'));
SELECT function, shard FROM snowflake_columns WHERE table_name = 'far' ORDER BY shard;
SELECT function::regprocedure, shard, home::regnamespace, is_direct FROM snowflake_internal.call_of('pg_class'::regclass, 'reg.far'::regclass, 1);
-- in a circle
CREATE OR REPLACE FUNCTION reg.f0() RETURNS bigint LANGUAGE sql RETURN CASE WHEN random() < 2 THEN snowflake_next_id(30, 'reg.s') ELSE reg.f20() END;
SELECT count(*), count(DISTINCT shard) FROM snowflake_internal.calls() WHERE shard = 30;
SELECT function::regprocedure, shard, is_direct FROM snowflake_internal.call_of('pg_proc'::regclass, 'reg.f20()'::regprocedure, 0);
WITH everything AS (
    SELECT 'pg_proc'::regclass::oid AS classid, oid AS objid, 0 AS objsubid FROM pg_proc WHERE pronamespace = 'reg'::regnamespace
    UNION ALL SELECT 'pg_class'::regclass, attrelid, attnum FROM pg_attribute WHERE attnum > 0
    UNION ALL SELECT 'pg_type'::regclass, oid, 0 FROM pg_type WHERE typtype = 'd'
), single AS (
    SELECT k.classid, k.objid, k.objsubid, k.schema, k.shard, k.seq, k.epoch_ms, k.is_direct, k.is_plain
    FROM everything AS e, snowflake_internal.call_of(e.classid, e.objid, e.objsubid) AS k
), total AS (
    SELECT k.classid, k.objid, k.objsubid, k.schema, k.shard, k.seq, k.epoch_ms, k.is_direct, k.is_plain
    FROM snowflake_internal.calls() AS k
)
SELECT (SELECT count(*) FROM total) AS calls, (SELECT count(*) FROM (TABLE total EXCEPT ALL TABLE single) AS m) AS missing,
       (SELECT count(*) FROM (TABLE single EXCEPT ALL TABLE total) AS m) AS more;

-- Each call of its own is shown, and of those that come through functions no more than sixteen.
DO $$
BEGIN
    FOR i IN 0..1 LOOP
        EXECUTE format('CREATE FUNCTION reg.many%s() RETURNS bigint LANGUAGE sql RETURN %s', i,
                       (SELECT string_agg(format('snowflake_next_id(%s, ''reg.s'')', n), ' + ') FROM generate_series(40 + i * 20, 59 + i * 20) AS n));
    END LOOP;
END $$;
CREATE TABLE reg.through_many (id bigint DEFAULT reg.many0() + reg.many1());
SELECT classid::regclass, is_direct, count(*) FROM snowflake_internal.calls() WHERE shard BETWEEN 40 AND 79 GROUP BY 1, 2 ORDER BY 1;

-- Objects are found in an order of their own, wherever VACUUM has made room in pg_depend.
CREATE SCHEMA reg_order;
DO $$
BEGIN
    FOR i IN 1..40 LOOP
        EXECUTE format('CREATE TABLE reg_order.gone_%s (id bigint DEFAULT snowflake_next_id(90, ''reg.s''))', i);
    END LOOP;
    CREATE FUNCTION reg_order.next_id() RETURNS bigint LANGUAGE sql RETURN snowflake_next_id(90, 'reg.s');
    FOR i IN 1..40 LOOP
        EXECUTE format('DROP TABLE reg_order.gone_%s', i);
    END LOOP;
END $$;
VACUUM pg_depend;
DO $$
BEGIN
    FOR i IN 1..40 LOOP
        EXECUTE format('CREATE TABLE reg_order.later_%s (id bigint DEFAULT snowflake_next_id(90, ''reg.s''))', i);
    END LOOP;
END $$;
\set VERBOSITY default
SELECT snowflake_create_shard(90, 'elsewhere');

DROP SCHEMA reg, reg_types, reg_order CASCADE;

-- Thousands of objects leave no more in a session's memory than some hundred.
CREATE SCHEMA reg_memory;
DO $$
BEGIN
    FOR i IN 1..5000 LOOP
        EXECUTE format('CREATE FUNCTION reg_memory.f%s() RETURNS bigint LANGUAGE sql RETURN snowflake_next_id(91, ''snowflake_id_seq'')', i);
    END LOOP;
END $$;
\c
SELECT count(*) FROM snowflake_internal.calls() WHERE shard = 91;
SELECT used_bytes < 6000000 AS is_bounded FROM pg_backend_memory_contexts WHERE name = 'CacheMemoryContext';
SET client_min_messages = warning;
DROP SCHEMA reg_memory CASCADE;
