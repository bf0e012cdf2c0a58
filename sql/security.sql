-- What an ordinary role can do and see, arguments that are none, and names that break what is pasted together.

CREATE ROLE snowflake_regress_owner;
CREATE ROLE snowflake_regress_user;
CREATE SCHEMA sec AUTHORIZATION snowflake_regress_owner;
GRANT USAGE ON SCHEMA sec TO snowflake_regress_user;
SET ROLE snowflake_regress_owner;
CREATE SEQUENCE sec.s;
CREATE TABLE sec.t (id bigint PRIMARY KEY DEFAULT snowflake_next_id(700, 'sec.s'), body text);
CREATE VIEW sec.v AS SELECT id FROM sec.t;
CREATE TYPE sec.pair AS (a bigint, b bigint);
INSERT INTO sec.t (body) VALUES ('one') RETURNING snowflake_shard(id);
RESET ROLE;

-- The SQLSTATE of a command, NULL where it ends well.
CREATE FUNCTION sec.state(command text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE command;
    RETURN NULL;
EXCEPTION WHEN OTHERS THEN
    RETURN SQLSTATE;
END $$;
GRANT EXECUTE ON FUNCTION sec.state(text) TO PUBLIC;

-- Without a right on a sequence its position is not told; what pg_attrdef and pg_class tell to all, is.
SET ROLE snowflake_regress_user;
SELECT table_name, shard, seq FROM snowflake_columns WHERE schema_name = 'sec';
SELECT seq, shard, last_id_at, last_counter, lead FROM snowflake_sequences WHERE seq = 'sec.s'::regclass;
SELECT command, sec.state(command) FROM (VALUES
    ($$SELECT snowflake_next_id(700, 'sec.s')$$),
    ($$SELECT snowflake_next_ids(700, 'sec.s', 1)$$),
    ($$SELECT snowflake_advance('sec.s', 1)$$),
    ($$SELECT snowflake_attach('sec.t')$$),
    ($$SELECT snowflake_create_shard(701, 'sec')$$),
    ($$SELECT snowflake_create_shard(701, 'sec_of_mine')$$),
    ($$SELECT snowflake_adopt('sec.state(text)', 700)$$),
    -- the steps of the functions above have no rights of their own either
    ($$SELECT snowflake_internal.attach_new_sequence('sec.t', 'id')$$)) AS commands (command);
RESET ROLE;

-- USAGE draws and shows the position; it neither moves nor sets it.
GRANT USAGE ON SEQUENCE sec.s TO snowflake_regress_user;
SET ROLE snowflake_regress_user;
SELECT last_id_at > now() - interval '1 hour' AS told FROM snowflake_sequences WHERE seq = 'sec.s'::regclass;
SELECT sec.state($$SELECT snowflake_next_id(700, 'sec.s')$$) AS draw,
       sec.state($$SELECT snowflake_advance('sec.s', 1)$$) AS advance,
       sec.state($$SELECT setval('sec.s', 1)$$) AS setval;
-- However many are asked for, the sequence leads the clock by max_lead at most.
SET statement_timeout = '2s';
SELECT count(*) FROM snowflake_next_ids(700, 'sec.s', 2147483647);
RESET statement_timeout;
SELECT lead <= interval '1 s' AS held_back FROM snowflake_sequences WHERE seq = 'sec.s'::regclass;
RESET ROLE;

-- Set before the library is loaded, a setting is a name without a meaning. Loading checks the privilege,
-- and drops the value of a role that may not set it. The shard needs no privilege.
\c
SET SESSION AUTHORIZATION snowflake_regress_user;
SET snowflake.max_lead = '1h';
SET snowflake.shard = 3;
SELECT snowflake_shard(0);
SHOW snowflake.max_lead;
SHOW snowflake.shard;
RESET SESSION AUTHORIZATION;

-- The internal functions that look at data: columns that are none, where an index begins with an expression.
CREATE TABLE sec.expression (id bigint, body text);
CREATE INDEX ON sec.expression ((id + 1));
INSERT INTO sec.expression SELECT snowflake_max_id(now() + n * interval '1 min') FROM generate_series(1, 9) AS n;
SELECT attnum, snowflake_internal.id_above('sec.expression'::regclass, attnum, 0, 'sec.s'::regclass, 1314220021721) AS above,
       snowflake_internal.stored_position('sec.expression'::regclass, attnum, 5) AS position
FROM unnest('{0,1,2,3,-1,-6,32768,65536,65537,-65535,2147483647,-2147483648}'::integer[]) AS attnum;
-- Columns and tables that are none; a table of another role.
SELECT attnum, sec.state(format('SELECT snowflake_internal.column_end(%L::regclass, %s, 0)', 'sec.expression', attnum))
FROM unnest('{0,1,2,3,-1,-6,32768,65536,65537,-65535,2147483647,-2147483648}'::integer[]) AS attnum;
SELECT relation, sec.state(format('SELECT snowflake_internal.column_end(%L::regclass, 1, 0)', relation))
FROM unnest('{0,4294967295,sec.s,sec.v,sec.pair,sec.t_pkey}'::text[]) AS relation;
SET ROLE snowflake_regress_user;
SELECT sec.state($$SELECT snowflake_internal.column_end('sec.expression'::regclass, 1, 0)$$) AS of_another,
       sec.state($$SELECT snowflake_internal.column_end('4294967295'::regclass, 1, 0)$$) AS of_none;
RESET ROLE;
DROP TABLE sec.expression;

-- What is no sequence, or nothing at all.
SELECT f.call, r.relation, sec.state(format(f.call, r.relation))
FROM (VALUES (1, 'SELECT snowflake_next_id(700, %L::regclass)'), (2, 'SELECT snowflake_next_ids(700, %L::regclass, 1)'),
             (3, 'SELECT snowflake_advance(%L::regclass, 1)')) AS f (n, call),
     (VALUES (1, '0'), (2, '4294967295'), (3, 'sec.t'), (4, 'sec.t_pkey'), (5, 'sec.v'), (6, 'sec.pair'),
             (7, 'pg_class'), (8, '2836')) AS r (n, relation)
ORDER BY f.n, r.n;
SELECT f.call, r.relation, sec.state(format(f.call, r.relation))
FROM (VALUES (1, 'SELECT snowflake_attach(%L::regclass, shard => 702)')) AS f (n, call),
     (VALUES (1, '0'), (2, '4294967295'), (4, 'sec.t_pkey'), (5, 'sec.v'), (6, 'sec.pair'), (7, 'pg_class'), (8, '2836'),
             (9, 'sec.s')) AS r (n, relation)
ORDER BY f.n, r.n;
SELECT command, sec.state(command) FROM (VALUES
    ('SELECT snowflake_adopt(0, 700)'), ('SELECT snowflake_adopt(NULL, 700)'), ($$SELECT snowflake_adopt('now()', 700)$$),
    ($$SELECT snowflake_attach(NULL)$$), ($$SELECT snowflake_attach('sec.t', NULL)$$), ($$SELECT snowflake_attach('sec.t', '')$$),
    ($$SELECT snowflake_attach('sec.t', 'ctid')$$), ($$SELECT snowflake_attach('sec.t', 'id', -1)$$),
    ($$SELECT snowflake_create_shard(703, '')$$), ($$SELECT snowflake_create_shard(703, 'pg_mine')$$),
    ($$SELECT snowflake_next_ids(700, 'sec.s', -1)$$), ($$SELECT snowflake_advance('sec.s', -1)$$),
    ($$SELECT snowflake_internal.claim_shard(8192, 'sec')$$), ($$SELECT snowflake_internal.call_of(1259, 0, 70000)$$)) AS commands (command);

-- The temporary sequence of this session is nobody else's; one that is gone is gone.
CREATE TEMP SEQUENCE temporary;
SELECT 'temporary'::regclass::oid AS temporary \gset
SELECT snowflake_next_id(700, 'temporary') > 0 AS own;
DROP SEQUENCE temporary;
SELECT sec.state(format('SELECT snowflake_next_id(700, %s::regclass)', :temporary));

-- A view that others made of a table gives nobody a right to the sequence that the table gets.
GRANT CREATE ON SCHEMA sec TO snowflake_regress_user;
SET ROLE snowflake_regress_user;
CREATE VIEW sec.of_others AS SELECT * FROM sec.t;
GRANT INSERT ON sec.of_others TO PUBLIC;
RESET ROLE;
ALTER TABLE sec.t ALTER COLUMN id DROP DEFAULT;
SELECT snowflake_attach('sec.t', shard => 700);
SELECT has_sequence_privilege('snowflake_regress_user', 'sec.t_id_seq', 'USAGE, SELECT, UPDATE') AS given;

-- Anybody can write what is no call of use into a DEFAULT of his own, and let functions call each other in
-- more ways than can be followed. It ends no one's view of the rest.
SET ROLE snowflake_regress_user;
CREATE SEQUENCE sec.own;
CREATE TABLE sec.odd (
    a bigint DEFAULT snowflake_next_id(730, 'pg_class'),
    b bigint DEFAULT snowflake_next_id(9999999, '4294967295'::regclass, -9223372036854775808),
    c bigint DEFAULT snowflake_next_id(NULL::integer, NULL::regclass));
CREATE FUNCTION sec.f0() RETURNS bigint LANGUAGE sql RETURN 1;
DO $$
BEGIN
    FOR i IN 1..9 LOOP
        EXECUTE format('CREATE FUNCTION sec.f%s() RETURNS bigint LANGUAGE sql RETURN %s', i,
                       (SELECT string_agg(format('sec.f%s()', i - 1), ' + ') FROM generate_series(1, 12)));
    END LOOP;
END $$;
CREATE TABLE sec.many (a bigint DEFAULT sec.f9() + snowflake_next_id(731, 'sec.own'));
RESET ROLE;
SET statement_timeout = '60s';
SELECT table_name, column_name, shard, seq FROM snowflake_columns WHERE schema_name = 'sec' AND table_name IN ('odd', 'many') ORDER BY 1, 2;
SELECT shard, seq FROM snowflake_sequences WHERE shard BETWEEN 730 AND 999;
SELECT object, problem FROM snowflake_check() WHERE object LIKE 'sec.odd%' ORDER BY 1, 2;
RESET statement_timeout;
-- 300 functions that call 300 others: which call 300 more that make no IDs, or make IDs of many shards.
CREATE SCHEMA sec_many AUTHORIZATION snowflake_regress_user;
SET ROLE snowflake_regress_user;
DO $$
DECLARE
    make CONSTANT text := 'CREATE FUNCTION sec_many.%s_%s() RETURNS bigint LANGUAGE sql RETURN %s';
BEGIN
    FOR i IN 1..300 LOOP
        EXECUTE format(make, 'native', i, format('snowflake_next_id(%s, ''sec.own'')', 1000 + i));
        EXECUTE format(make, 'plain', i, '1');
    END LOOP;
    FOR i IN 1..300 LOOP
        EXECUTE format(make, 'wide', i, (SELECT string_agg(format('sec_many.plain_%s()', n), ' + ') FROM generate_series(1, 300) AS n));
    END LOOP;
    FOR i IN 1..300 LOOP
        EXECUTE format(make, 'calls', i, (SELECT string_agg(format('sec_many.wide_%s()', n), ' + ') FROM generate_series(1, 300) AS n)
                                         || ' + snowflake_next_id(1000, ''sec.own'')');
        EXECUTE format(make, 'inherits', i, (SELECT string_agg(format('sec_many.native_%s()', n), ' + ') FROM generate_series(i, least(i + 50, 300)) AS n));
        EXECUTE format('CREATE TABLE sec_many.t_%1$s (a bigint DEFAULT sec_many.inherits_%1$s(), b bigint DEFAULT sec_many.calls_%1$s(), c bigint DEFAULT sec_many.wide_%1$s())', i);
    END LOOP;
END $$;
RESET ROLE;
SET statement_timeout = '60s';
SELECT column_name, count(DISTINCT table_name), count(*) > 300 AS several FROM snowflake_columns WHERE schema_name = 'sec_many' GROUP BY 1 ORDER BY 1;
SELECT count(*) FROM snowflake_shards WHERE schema_name = 'sec_many';
SELECT count(*) FROM snowflake_sequences WHERE shard BETWEEN 1001 AND 1300;
SELECT severity, left(object, 14) AS object, count(*) FROM snowflake_check() WHERE object LIKE 'sec_many%' AND object NOT LIKE '%.t_%' GROUP BY 1, 2 ORDER BY 1;
BEGIN;
SELECT snowflake_create_shard(1301, 'sec_new');
ROLLBACK;
SELECT count(*) FROM snowflake_internal.call_of('pg_proc'::regclass, 'sec_many.inherits_1()'::regprocedure, 0);
RESET statement_timeout;
SET client_min_messages = warning;
DROP SCHEMA sec_many CASCADE;
RESET client_min_messages;

-- An expression that its owner could just store, for a session with a smaller stack; a time that is none.
SET ROLE snowflake_regress_user;
DO $$
BEGIN
    EXECUTE format('CREATE TABLE sec.deep (a bigint DEFAULT snowflake_next_id(735, ''sec.own'') %s)', repeat('+ 1 ', 1500));
END $$;
CREATE SEQUENCE sec.set;
SELECT setval('sec.set', 9000000000000000000);
CREATE TABLE sec.no_time (
    a bigint PRIMARY KEY DEFAULT snowflake_next_id(736, 'sec.set', -9223372036854775808),
    b bigint UNIQUE DEFAULT snowflake_next_id(737, 'sec.set', 9223372036854775807));
INSERT INTO sec.no_time VALUES (9000000000000491520, 9000000000000492544);
RESET ROLE;
SET max_stack_depth = '200kB';
SELECT column_name, shard, seq FROM snowflake_columns WHERE table_name = 'deep';
SELECT shard, last_id_at IS NULL AS no_time FROM snowflake_sequences WHERE seq = 'sec.set'::regclass ORDER BY 1;
SELECT severity, object, regexp_replace(problem, '\d+ ms', '# ms') AS problem FROM snowflake_check() WHERE object ~ 'sec\.(deep|set|no_time)' ORDER BY 1, 2, 3;
RESET max_stack_depth;

-- What others made in a schema that is to be a shard is not built upon.
CREATE SCHEMA sec_a;
CREATE SCHEMA sec_b;
CREATE SCHEMA sec_c;
GRANT USAGE, CREATE ON SCHEMA sec_a, sec_b, sec_c TO snowflake_regress_user;
SET ROLE snowflake_regress_user;
CREATE SEQUENCE sec_a.table_id_seq;
CREATE VIEW sec_b.table_id_seq AS SELECT 1 AS one;
CREATE FUNCTION sec_c.more() RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN 0; END';
CREATE FUNCTION sec_c.next_id() RETURNS bigint LANGUAGE sql RETURN sec_c.more() + snowflake_next_id(734, 'sec.own');
RESET ROLE;
SELECT sec.state($$SELECT snowflake_create_shard(732, 'sec_a')$$) AS sequence_of_a_stranger,
       sec.state($$SELECT snowflake_create_shard(733, 'sec_b')$$) AS no_sequence,
       sec.state($$SELECT snowflake_create_shard(734, 'sec_c')$$) AS function_does_more;

-- A function can draw from the sequence of another role, and its table can hold any number. To adopt the function
-- does not put that sequence out of use.
SET ROLE snowflake_regress_user;
CREATE FUNCTION sec.far_id() RETURNS bigint LANGUAGE plpgsql AS
    $$ BEGIN RETURN (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721) << 23 | (700 << 10) | nextval('sec.s') % 1024; END $$;
CREATE TABLE sec.far (id bigint PRIMARY KEY DEFAULT sec.far_id());
INSERT INTO sec.far VALUES (9000000000000000000);
RESET ROLE;
SELECT sec.state($$SELECT snowflake_adopt('sec.far_id()', 700)$$) AS adopt,
       sec.state($$SELECT snowflake_next_id(700, 'sec.s')$$) AS draw;

-- A name of each kind that ends a quotation, starts a comment, is a format of its own.
DO $do$
DECLARE
    odd CONSTANT text := E'a''b"c$$\\ %I%s%1$L\n--/*ü';
    one CONSTANT name := odd || rpad('', 63 - octet_length(odd) - 2, 'x') || '1';
    -- From 19 on, a role's name has no newline.
    role CONSTANT name := 'snowflake_regress_' ||
        CASE WHEN current_setting('server_version_num')::int < 190000 THEN odd ELSE replace(odd, E'\n', ' ') END;
    tbl text;
    id bigint;
BEGIN
    EXECUTE format('CREATE ROLE %I', role);
    PERFORM snowflake_create_shard(710, one);
    EXECUTE format('CREATE TABLE %1$I.%2$I (%3$I bigint PRIMARY KEY DEFAULT %1$I.next_id(), %4$I text DEFAULT %5$L,
        CONSTRAINT %6$I CHECK (%4$I <> %7$L))', one, odd || ' t', odd || ' id', odd || ' body', odd || 'value', odd || ' check', odd);
    EXECUTE format('CREATE INDEX %I ON %I.%I ((%I || %L))', odd || ' index', one, odd || ' t', odd || ' body', odd);
    EXECUTE format('COMMENT ON TABLE %I.%I IS %L', one, odd || ' t', odd);
    EXECUTE format('COMMENT ON CONSTRAINT %I ON %I.%I IS %L', odd || ' check', one, odd || ' t', odd);
    EXECUTE format('GRANT INSERT, SELECT (%I) ON %I.%I TO %I', odd || ' id', one, odd || ' t', role);
    EXECUTE format('CREATE TABLE %1$I.%2$I (%3$I serial PRIMARY KEY, %4$I bigint REFERENCES %1$I.%5$I)',
        one, odd || ' u', odd || ' id', odd || ' t id', odd || ' t');
    EXECUTE format('INSERT INTO %I.%I VALUES (DEFAULT, NULL), (DEFAULT, NULL)', one, odd || ' u');
    EXECUTE format('GRANT INSERT ON %I.%I TO %I', one, odd || ' u', role);
    SET LOCAL client_min_messages = warning;
    PERFORM snowflake_attach(format('%I.%I', one, odd || ' u')::regclass, odd || ' id');

    EXECUTE format('CREATE SEQUENCE %I.%I', one, odd || ' s');
    EXECUTE format('CREATE FUNCTION %I.%I() RETURNS bigint LANGUAGE plpgsql AS %L', one, odd || ' f', format(
        'BEGIN RETURN (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721) << 23 | (710 << 10) | nextval(%L) %% 1024; END',
        format('%I.%I', one, odd || ' s')));
    PERFORM snowflake_adopt(format('%I.%I()', one, odd || ' f')::regprocedure, 710);
    EXECUTE format('SELECT %I.%I()', one, odd || ' f') INTO id;
    RAISE INFO 'the adopted function makes IDs of shard %', snowflake_shard(id);

    FOR tbl IN SELECT format('%I.%I', schema_name, table_name) COLLATE "C" FROM snowflake_columns WHERE schema_name = one ORDER BY 1 LOOP
        EXECUTE format('INSERT INTO %s DEFAULT VALUES RETURNING %I', tbl, odd || ' id') INTO id;
        RAISE INFO 'shard %, %, %', snowflake_shard(id), quote_literal(obj_description(tbl::regclass, 'pg_class')),
            (SELECT string_agg(privilege_type, ' ' ORDER BY privilege_type) FROM pg_class AS c, aclexplode(c.relacl) AS a
             WHERE c.oid = tbl::regclass AND a.grantee::regrole = quote_ident(role)::regrole);
    END LOOP;
    PERFORM FROM snowflake_shards WHERE schema_name = one;
    PERFORM FROM snowflake_sequences;
    PERFORM FROM snowflake_check();
    EXECUTE format('DROP SCHEMA %I CASCADE; DROP ROLE %I', one, role);
END $do$;

-- In a schema with such a name, as far as the server lets it have one, the extension itself works.
SET client_min_messages = warning;
SELECT quote_ident('x %I%s%1L;ü') AS schema \gset
BEGIN;
DROP EXTENSION snowflake CASCADE;
CREATE SCHEMA :schema;
CREATE EXTENSION snowflake SCHEMA :schema;
SET search_path = :schema;
SELECT snowflake_create_shard(720, 'sec_d');
CREATE TABLE sec_d.t (id serial, a bigint DEFAULT sec_d.next_id());
SELECT snowflake_attach('sec_d.t');
INSERT INTO sec_d.t DEFAULT VALUES RETURNING snowflake_shard(id), snowflake_shard(a);
SELECT object FROM snowflake_check();
ROLLBACK;

DROP SCHEMA sec, sec_a, sec_b, sec_c CASCADE;
DROP ROLE snowflake_regress_owner, snowflake_regress_user;
