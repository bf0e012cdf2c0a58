-- snowflake_clone_shard: a shard with the template's tables, and no other difference than its name,
-- its number and its owner.

SET timezone = 'UTC';
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE SCHEMA tool;
GRANT USAGE ON SCHEMA tool TO PUBLIC;

-- All that the catalogues say of a schema's tables, sequences and functions and of itself, without its
-- name, shard number and owner.
CREATE FUNCTION tool.describe(schema_name name) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    schema_id oid := quote_ident(schema_name)::regnamespace;
BEGIN
    PERFORM set_config('search_path', quote_ident(schema_name), true);
    RETURN QUERY
    WITH rel AS (SELECT * FROM pg_class WHERE relnamespace = schema_id AND relkind IN ('r', 'p', 'S', 'i', 'I')),
    lines (line) AS (
        SELECT concat_ws(' | ', 'relation', relkind, relname, relpersistence, amname, spcname, reloptions,
                         (SELECT t.reloptions FROM pg_class AS t WHERE t.oid = rel.reltoastrelid), relreplident,
                         relrowsecurity, relforcerowsecurity, pg_get_partkeydef(rel.oid), pg_get_expr(relpartbound, rel.oid),
                         nullif(reloftype, 0)::regtype, obj_description(rel.oid, 'pg_class'))
        FROM rel LEFT JOIN pg_am ON pg_am.oid = relam LEFT JOIN pg_tablespace ON pg_tablespace.oid = reltablespace
        UNION ALL
        SELECT concat_ws(' | ', 'column', relname, attname, format_type(atttypid, atttypmod), attnotnull, attidentity,
                         attgenerated, nullif(attcollation, 0)::regcollation, attstorage, attcompression,
                         nullif(attstattarget, -1), attislocal, attinhcount, pg_get_expr(adbin, adrelid),
                         (SELECT string_agg(option, ',') FROM unnest(attoptions) AS option WHERE option LIKE 'n_distinct%'),
                         col_description(attrelid, attnum))
        FROM rel JOIN pg_attribute ON attrelid = rel.oid
        LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
        WHERE attnum > 0 AND NOT attisdropped AND relkind <> 'S'
        UNION ALL
        SELECT concat_ws(' | ', 'order', relname, string_agg(attname, ',' ORDER BY attnum))
        FROM rel JOIN pg_attribute ON attrelid = rel.oid WHERE attnum > 0 AND NOT attisdropped GROUP BY relname
        UNION ALL
        SELECT concat_ws(' | ', 'constraint', conrelid::regclass, conname, pg_get_constraintdef(c.oid), conislocal, coninhcount,
                         conindid::regclass, obj_description(c.oid, 'pg_constraint'))
        FROM rel JOIN pg_constraint AS c ON conrelid = rel.oid
        UNION ALL
        SELECT concat_ws(' | ', 'index', pg_get_indexdef(indexrelid), indisprimary, indisunique, indimmediate, indisclustered,
                         indisvalid, indisreplident,
                         (SELECT string_agg(inhparent::regclass::text, ',') FROM pg_inherits WHERE inhrelid = indexrelid))
        FROM rel JOIN pg_index ON indexrelid = rel.oid
        UNION ALL
        SELECT concat_ws(' | ', 'partition', inhrelid::regclass, inhparent::regclass)
        FROM rel JOIN pg_inherits ON inhrelid = rel.oid WHERE relispartition
        UNION ALL
        SELECT concat_ws(' | ', 'sequence', relname, seqtypid::regtype, seqstart, seqincrement, seqmax, seqmin, seqcache, seqcycle,
                         (SELECT refobjid::regclass || '.' || attname || deptype::text FROM pg_depend
                          JOIN pg_attribute ON attrelid = refobjid AND attnum = refobjsubid
                          WHERE objid = rel.oid AND deptype IN ('a', 'i') AND refclassid = 'pg_class'::regclass))
        FROM rel JOIN pg_sequence ON seqrelid = rel.oid
        UNION ALL
        SELECT concat_ws(' | ', 'statistics', pg_get_statisticsobjdef(s.oid), nullif(stxstattarget, -1),
                         obj_description(s.oid, 'pg_statistic_ext'))
        FROM pg_statistic_ext AS s WHERE stxnamespace = schema_id
        UNION ALL
        SELECT pg_get_functiondef(p.oid) || obj_description(p.oid, 'pg_proc') FROM pg_proc AS p
        JOIN pg_language AS l ON l.oid = prolang AND lanname = 'sql'
        WHERE pronamespace = schema_id AND prosqlbody IS NOT NULL AND proargtypes = ''
        UNION ALL
        SELECT concat_ws(' | ', 'privilege', object, privilege_type,
                         CASE grantee WHEN 0 THEN 'PUBLIC' WHEN owner THEN 'owner' ELSE grantee::regrole::text END, is_grantable)
        FROM (SELECT 'schema', nspowner, coalesce(nspacl, acldefault('n', nspowner)) FROM pg_namespace WHERE oid = schema_id
              UNION ALL
              SELECT relname, relowner, coalesce(relacl, acldefault(CASE relkind WHEN 'S' THEN 's' ELSE 'r' END::"char", relowner))
              FROM rel WHERE relkind NOT IN ('i', 'I')
              UNION ALL
              SELECT relname || '.' || attname, relowner, attacl FROM rel JOIN pg_attribute ON attrelid = rel.oid
              UNION ALL
              SELECT proname, proowner, coalesce(proacl, acldefault('f', proowner)) FROM pg_proc
              WHERE pronamespace = schema_id AND prosqlbody IS NOT NULL AND proargtypes = '') AS o (object, owner, acl),
             aclexplode(acl)
    )
    SELECT regexp_replace(replace(line, quote_ident(schema_name) || '.', ''),
                          '(snowflake_next_id\(|next ID of shard )\d+', '\1?', 'g') FROM lines;
END $$;
CREATE FUNCTION tool.differences(template name, clone name) RETURNS TABLE (only_in text, line text) LANGUAGE sql AS $$
    SELECT * FROM (
        SELECT 'template', d FROM (SELECT tool.describe(template) EXCEPT ALL SELECT tool.describe(clone)) AS t (d)
        UNION ALL
        SELECT 'clone', d FROM (SELECT tool.describe(clone) EXCEPT ALL SELECT tool.describe(template)) AS c (d)) AS both_ways (only_in, line)
    ORDER BY line COLLATE "C", 1
$$;
RESET client_min_messages;

-- The shard of the README.
SELECT snowflake_create_shard(1, 'insta1');
CREATE TABLE insta1.users (
    id bigint PRIMARY KEY DEFAULT insta1.next_id(),
    name text NOT NULL UNIQUE);
CREATE TABLE insta1.photos (
    id bigint PRIMARY KEY DEFAULT insta1.next_id(),
    user_id bigint NOT NULL REFERENCES insta1.users ON DELETE CASCADE,
    caption text);
CREATE INDEX ON insta1.photos (user_id, id);
CREATE TABLE insta1.likes (
    photo_id bigint REFERENCES insta1.photos ON DELETE CASCADE,
    user_id bigint REFERENCES insta1.users,
    PRIMARY KEY (photo_id, user_id));
INSERT INTO insta1.users (name) VALUES ('not cloned');
SELECT snowflake_clone_shard('insta1', 2, 'insta2');
\d insta2.photos
SELECT * FROM tool.differences('insta1', 'insta2');
SELECT count(*) AS rows FROM insta2.users;
SELECT * FROM snowflake_shards WHERE schema_name IN ('insta1', 'insta2') ORDER BY shard;
SELECT schema_name, table_name, column_name, function, shard, seq FROM snowflake_columns
WHERE schema_name IN ('insta1', 'insta2') ORDER BY 1, 2;
WITH u AS (INSERT INTO insta2.users (name) VALUES ('kevin'), ('mike') RETURNING id),
     p AS (INSERT INTO insta2.photos (user_id, caption) SELECT id, 'first' FROM u LIMIT 1 RETURNING id)
SELECT 'photo' AS made, snowflake_shard(id) AS shard FROM p UNION ALL SELECT 'user', snowflake_shard(id) FROM u;
INSERT INTO insta1.users (name) VALUES ('kevin') RETURNING snowflake_shard(id);
-- The clone's references are to the clone.
\set VERBOSITY terse
INSERT INTO insta2.photos (user_id) SELECT id FROM insta1.users LIMIT 1;
\set VERBOSITY default
DELETE FROM insta2.users WHERE name = 'kevin';
SELECT count(*) FROM insta2.users;
-- A clone is a template as well.
SELECT snowflake_clone_shard('insta2', 3, 'insta3');
SELECT * FROM tool.differences('insta1', 'insta3');
SELECT relname FROM pg_class WHERE relnamespace = 'insta3'::regnamespace AND relname LIKE '%\_seq';

-- Everything that a table can have, under names that have everything a name can have.
SET client_min_messages = warning;
CREATE ROLE snowflake_regress_app;
CREATE ROLE "snowflake regress %I ""reader""";
CREATE SCHEMA outside;
CREATE TABLE outside.countries (code text, region int DEFAULT 0, PRIMARY KEY (code), UNIQUE (code, region));
CREATE SEQUENCE outside.ids;
CREATE DOMAIN outside.id AS bigint CHECK (VALUE > 0);
SET allow_in_place_tablespaces = on;
CREATE TABLESPACE snowflake_regress_space LOCATION '';
RESET allow_in_place_tablespaces;
CREATE ACCESS METHOD snowflake_regress_heap TYPE TABLE HANDLER heap_tableam_handler;

\set template 'Te%mplate "quoted" o''clock \\ ünïcödé $1 %s'
\set clone 'Clo%ne "quoted" o''clock \\ ünïcödé $$ %I ; DROP'
SELECT repeat('x', 63) AS x, repeat('X', 63) AS "X" \gset
SELECT snowflake_create_shard(100, :'template', 1767225600000) \g /dev/null
SET search_path = :"template", public;
COMMENT ON SCHEMA :"template" IS 'the template''s own';

-- columns and defaults
CREATE SEQUENCE own;
CREATE SEQUENCE "Order %s 'Numbers'" AS integer START WITH 1000 INCREMENT BY 10 MINVALUE 5 MAXVALUE 100000 CACHE 3 CYCLE;
COMMENT ON SEQUENCE own IS 'of the direct call';
CREATE SEQUENCE down INCREMENT BY -1;
CREATE FUNCTION other_id() RETURNS bigint SECURITY DEFINER RETURN snowflake_next_id(100, 'own');
COMMENT ON FUNCTION other_id() IS 'next ID of shard 100';
CREATE TABLE "User %I" (
    id bigint PRIMARY KEY DEFAULT next_id(),
    gone_before text,
    other bigint DEFAULT other_id(),
    direct bigint NOT NULL DEFAULT snowflake_next_id(100, 'own', 1767225600000),
    direct_text text DEFAULT snowflake_next_id(100, 'own'),
    direct_domain outside.id DEFAULT snowflake_next_id(100, 'own'),
    shared bigint DEFAULT snowflake_next_id(100, 'outside.ids'),
    by_setting bigint DEFAULT snowflake_next_id(),
    by_setting_too bigint DEFAULT snowflake_next_id(current_setting('snowflake.shard')::int, 'own'),
    serial_no serial,
    "small 'No'" smallserial,
    always bigint GENERATED ALWAYS AS IDENTITY (START WITH 100 INCREMENT BY 5 MINVALUE 50 MAXVALUE 100000 CACHE 7 CYCLE),
    by_default int GENERATED BY DEFAULT AS IDENTITY,
    code text DEFAULT 'N%s-' || lpad(nextval('"Order %s ''Numbers''"')::text, 8, '0') || '/' || next_id(),
    elsewhere bigint DEFAULT nextval('outside.ids'),
    email text COLLATE "C" NOT NULL,
    lower_email text COLLATE "C" GENERATED ALWAYS AS (lower(email)) STORED,
    price numeric(10, 2) DEFAULT 0.1 CHECK (price >= 0),
    tags varchar(30)[] DEFAULT '{"%s","it''s"}',
    at timestamptz(3) DEFAULT now(),
    during tstzrange,
    place point,
    "Ünï ""%s""" text DEFAULT E'back\\slash $$ %I' UNIQUE,
    CONSTRAINT "check 'em %s" CHECK (email <> '%I') NO INHERIT
);
ALTER TABLE "User %I" DROP COLUMN gone_before;
ALTER TABLE "User %I" ALTER email SET STORAGE EXTERNAL, ALTER code SET COMPRESSION pglz, ALTER code SET STATISTICS 1000,
    ALTER email SET (n_distinct = -0.5, n_distinct_inherited = 100);
ALTER SEQUENCE "User %I_by_default_seq" RENAME TO "identity %s";
ALTER SEQUENCE "User %I_serial_no_seq" RENAME TO "serial %s";
COMMENT ON TABLE "User %I" IS 'table''s %s';
COMMENT ON COLUMN "User %I"."Ünï ""%s""" IS 'column''s %s';
COMMENT ON CONSTRAINT "User %I_pkey" ON "User %I" IS 'primary key''s';
COMMENT ON CONSTRAINT "check 'em %s" ON "User %I" IS 'check''s';
COMMENT ON INDEX "User %I_pkey" IS 'index''s %s';

-- indexes whose names are not those that LIKE chooses, or are each other's
CREATE INDEX "User %I_email_idx" ON "User %I" (price);
CREATE INDEX "User %I_price_idx" ON "User %I" (email);
CREATE UNIQUE INDEX "partial ""%s""" ON "User %I" (lower(email) text_pattern_ops DESC NULLS LAST, price) INCLUDE (code)
    WHERE price > 0.5 AND code IS NOT NULL;
CREATE INDEX "User %I_email_idx1" ON "User %I" USING hash (email) WITH (fillfactor = 50) TABLESPACE snowflake_regress_space;
CREATE INDEX ON "User %I" USING gin (tags);
CREATE INDEX ON "User %I" USING gist (place);
CREATE INDEX ON "User %I" USING brin (at timestamptz_minmax_multi_ops (values_per_range = 16)) WITH (pages_per_range = 8);
CREATE INDEX named_twice ON "User %I" (other);
CREATE INDEX named_too ON "User %I" (other);
CREATE INDEX expressions ON "User %I" ((price * 2), (code || 'x'));
ALTER INDEX expressions ALTER COLUMN 2 SET STATISTICS 500;
COMMENT ON INDEX named_too IS 'too';
ALTER TABLE "User %I" ADD CONSTRAINT "no overlap %s" EXCLUDE USING gist (during WITH &&) WHERE (price > 1) DEFERRABLE INITIALLY DEFERRED,
    ADD CONSTRAINT late UNIQUE NULLS NOT DISTINCT (serial_no) DEFERRABLE;
COMMENT ON CONSTRAINT "no overlap %s" ON "User %I" IS 'exclusion''s';
-- a table, and a sequence, with the names that LIKE would give to other tables' indexes
CREATE TABLE "aa" (id int, CONSTRAINT renamed PRIMARY KEY (id));
CREATE TABLE "aa_pkey" (id bigint GENERATED ALWAYS AS IDENTITY);
ALTER SEQUENCE "aa_pkey_id_seq" RENAME TO "bb_id_seq1";
CREATE TABLE "bb" (id serial, n int GENERATED ALWAYS AS IDENTITY);
ALTER SEQUENCE "bb_id_seq" RENAME TO "bb_n_seq2";
ALTER SEQUENCE "bb_n_seq" RENAME TO "bb_id_seq";
ALTER SEQUENCE "bb_n_seq2" RENAME TO "bb_n_seq";
CREATE TABLE :"x" (:"X" bigint DEFAULT next_id(), :"x" serial, PRIMARY KEY (:"X"));
CREATE INDEX ON :"x" (:"x");
CREATE INDEX ON :"x" (:"x" DESC);

-- table options
CREATE UNLOGGED TABLE "unlogged" (id serial PRIMARY KEY, n int GENERATED ALWAYS AS IDENTITY, t text)
    WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = '0.05', toast.autovacuum_enabled = off) TABLESPACE snowflake_regress_space;
CREATE TABLE options (id int NOT NULL UNIQUE, a int, b int, c text) USING snowflake_regress_heap;
ALTER TABLE options REPLICA IDENTITY USING INDEX options_id_key;
ALTER TABLE options CLUSTER ON options_id_key;
CREATE TABLE full_identity (id int);
ALTER TABLE full_identity REPLICA IDENTITY FULL;
CREATE TABLE no_identity (id int);
ALTER TABLE no_identity REPLICA IDENTITY NOTHING;
CREATE STATISTICS "options_b_c_stat" (ndistinct) ON a, b FROM options;
CREATE STATISTICS "options_a_b_stat" (dependencies, mcv) ON b, c FROM options;
CREATE STATISTICS "st%s" ON lower(c), a FROM options;
ALTER STATISTICS "st%s" SET STATISTICS 300;
COMMENT ON STATISTICS "st%s" IS 'statistics''';
CREATE TYPE outside.row_type AS (a int, b text);
CREATE TABLE typed OF outside.row_type (PRIMARY KEY (a));
CREATE TABLE no_columns ();

-- foreign keys: in a circle, to itself, to other schemas, with every option
CREATE TABLE chicken (id bigint PRIMARY KEY DEFAULT next_id(), egg bigint NOT NULL, mother bigint REFERENCES chicken ON DELETE SET NULL,
    a int, b int DEFAULT 3, UNIQUE (a, b));
CREATE TABLE egg (id bigint PRIMARY KEY DEFAULT next_id(), hen bigint REFERENCES chicken DEFERRABLE INITIALLY DEFERRED,
    gone int, b int, a int, country text REFERENCES outside.countries ON UPDATE CASCADE, region int,
    CONSTRAINT "set 'null' %s" FOREIGN KEY (a, b) REFERENCES chicken (a, b) ON DELETE SET NULL (b) ON UPDATE SET DEFAULT,
    CONSTRAINT set_default FOREIGN KEY (a, b) REFERENCES chicken (a, b) MATCH FULL ON DELETE SET DEFAULT (b, a) DEFERRABLE,
    FOREIGN KEY (country, region) REFERENCES outside.countries (code, region) ON DELETE RESTRICT ON UPDATE RESTRICT);
ALTER TABLE egg DROP COLUMN gone;
ALTER TABLE chicken ADD CONSTRAINT in_a_circle FOREIGN KEY (egg) REFERENCES egg ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
    ADD CONSTRAINT not_valid FOREIGN KEY (egg) REFERENCES "User %I" NOT VALID;
COMMENT ON CONSTRAINT in_a_circle ON chicken IS 'which came first? %s';

-- partitions: of several levels, of every kind, with columns in another order and things of their own
CREATE TABLE events (id bigint DEFAULT next_id(), at date NOT NULL, kind text, user_id bigint REFERENCES "User %I" ON DELETE CASCADE,
    weight double precision, PRIMARY KEY (id, at)) PARTITION BY RANGE (at);
CREATE INDEX events_kind ON events (kind);
CREATE TABLE "events 2024 %s" PARTITION OF events FOR VALUES FROM (MINVALUE) TO ('2024-02-01') PARTITION BY RANGE (id, at);
CREATE TABLE events_a PARTITION OF "events 2024 %s" FOR VALUES FROM (MINVALUE, MINVALUE) TO (1000, '2024-01-02');
CREATE TABLE events_rest PARTITION OF "events 2024 %s" DEFAULT;
CREATE TABLE by_expression (kind text, n int) PARTITION BY LIST (lower(kind) COLLATE "C" text_pattern_ops);
CREATE TABLE by_expression_a PARTITION OF by_expression FOR VALUES IN ('a', 'it''s %s', NULL);
CREATE TABLE events_own (weight double precision, user_id bigint, kind text DEFAULT 'own', dropped int, at date NOT NULL, id bigint NOT NULL DEFAULT 7,
    CONSTRAINT own_key PRIMARY KEY (at, id));
ALTER TABLE events_own DROP CONSTRAINT own_key, DROP COLUMN dropped, ADD CONSTRAINT own_key PRIMARY KEY (id, at);
CREATE INDEX own_kind ON events_own (kind);
CREATE INDEX own_weight ON events_own (weight) WHERE kind = 'own';
ALTER TABLE events_own ADD CONSTRAINT own_check CHECK (weight < 1e10), ADD CONSTRAINT own_fk FOREIGN KEY (user_id) REFERENCES chicken;
ALTER TABLE events ATTACH PARTITION events_own FOR VALUES FROM ('2024-02-01') TO ('2025-02-03');
CREATE TABLE events_default PARTITION OF events DEFAULT PARTITION BY HASH (id);
CREATE TABLE events_h0 PARTITION OF events_default FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE events_h1 PARTITION OF events_default FOR VALUES WITH (MODULUS 2, REMAINDER 1);
CREATE TABLE measures (v double precision, t timestamptz, i interval) PARTITION BY RANGE (v, t, i);
CREATE TABLE measures_1 PARTITION OF measures FOR VALUES FROM (0.1, '2024-02-03 04:05:06.789+00', '1 day 02:03:04')
    TO (0.30000000000000004, '2025-03-04 00:00:00+00', '1 year');
CREATE TABLE numbered (id bigint GENERATED ALWAYS AS IDENTITY, k int) PARTITION BY LIST (k);
CREATE TABLE numbered_1 PARTITION OF numbered FOR VALUES IN (1);
CREATE TABLE about_events (id bigint, at date, FOREIGN KEY (id, at) REFERENCES events ON DELETE CASCADE);

-- privileges
GRANT USAGE ON SCHEMA :"template" TO snowflake_regress_app, "snowflake regress %I ""reader""";
GRANT CREATE ON SCHEMA :"template" TO snowflake_regress_app WITH GRANT OPTION;
GRANT SELECT, INSERT, UPDATE ON "User %I", chicken, egg TO snowflake_regress_app;
GRANT SELECT ON "User %I" TO "snowflake regress %I ""reader""" WITH GRANT OPTION;
GRANT SELECT ON chicken TO PUBLIC;
GRANT SELECT (id, email), UPDATE (price, "Ünï ""%s""") ON "User %I" TO "snowflake regress %I ""reader""";
GRANT REFERENCES (id) ON "User %I" TO snowflake_regress_app WITH GRANT OPTION;
GRANT USAGE ON own, table_id_seq, "identity %s" TO snowflake_regress_app;
GRANT SELECT ON "serial %s" TO PUBLIC;
REVOKE EXECUTE ON FUNCTION next_id() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION next_id() TO snowflake_regress_app;
REVOKE DELETE, TRUNCATE ON egg FROM CURRENT_USER;
SET ROLE "snowflake regress %I ""reader""";
GRANT SELECT ON "User %I" TO PUBLIC; -- by another grantor than the owner
RESET ROLE;
-- what the clone gets and the template has not
ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO "snowflake regress %I ""reader""";
ALTER DEFAULT PRIVILEGES GRANT ALL ON SEQUENCES TO PUBLIC;
ALTER DEFAULT PRIVILEGES GRANT USAGE ON SCHEMAS TO PUBLIC;
RESET search_path;
RESET client_min_messages;

-- None of the caller's settings changes what is made.
SET default_tablespace = snowflake_regress_space;
SET datestyle = 'SQL, DMY';
SET timezone = 'Asia/Kolkata'; -- IST is another one's, too
SET extra_float_digits = -10;
SET quote_all_identifiers = on;
SET default_table_access_method = snowflake_regress_heap;
SELECT snowflake_clone_shard(:'template', 101, :'clone');
SHOW search_path;
RESET quote_all_identifiers;
RESET default_table_access_method;
RESET default_tablespace;
RESET datestyle;
SET timezone = 'UTC';
RESET extra_float_digits;
SELECT count(*) > 300 AS compared FROM tool.describe(:'template');
SELECT * FROM tool.differences(:'template', :'clone');

-- Rows in both: each of its own shard, from its own sequences, with the template's epoch.
SET snowflake.shard = 8000;
INSERT INTO :"template"."User %I" (email, "Ünï ""%s""") SELECT 'a', n FROM generate_series(1, 3) AS n;
INSERT INTO :"clone"."User %I" (email) VALUES ('a')
RETURNING snowflake_shard(id) AS id, snowflake_shard(other) AS other, snowflake_shard(direct) AS direct, snowflake_shard(direct_text::bigint) AS direct_text,
    snowflake_shard(direct_domain) AS direct_domain, snowflake_shard(shared) AS shared, snowflake_shard(by_setting) AS by_setting, snowflake_shard(by_setting_too) AS by_setting_too,
    serial_no, "small 'No'", always, by_default, regexp_replace(code, '/\d+$', '/' || snowflake_shard(split_part(code, '/', 2)::bigint)) AS code, elsewhere > 0 AS elsewhere;
RESET snowflake.shard;
SELECT abs(extract(epoch FROM snowflake_timestamp(id, 1767225600000) - clock_timestamp())) < 60 AS epoch,
       abs(extract(epoch FROM snowflake_timestamp(direct, 1767225600000) - clock_timestamp())) < 60 AS direct_epoch
FROM :"clone"."User %I";
INSERT INTO :"clone".events (at, kind) VALUES ('2024-01-01', 'a'), ('2024-02-01', 'b'), ('2026-02-01', 'c')
RETURNING tableoid = format('%I.%I', :'clone', CASE WHEN at < '2024-02-01' THEN 'events_rest' WHEN at < '2025-01-01' THEN 'events_own' ELSE 'events_h' || right(tableoid::regclass::text, 1) END)::regclass AS routed, snowflake_shard(id);
-- Nothing of the clone's leads back: the template's tables, sequences and functions can all be dropped.
SET client_min_messages = warning;
CREATE TABLE tool.before AS SELECT line FROM tool.describe(:'clone') AS line;
DROP SCHEMA :"template" CASCADE;
SELECT * FROM (TABLE tool.before EXCEPT SELECT tool.describe(:'clone')) AS lost;
DROP SCHEMA :"clone" CASCADE;
ALTER DEFAULT PRIVILEGES REVOKE ALL ON TABLES FROM "snowflake regress %I ""reader""";
ALTER DEFAULT PRIVILEGES REVOKE ALL ON SEQUENCES FROM PUBLIC;
ALTER DEFAULT PRIVILEGES REVOKE USAGE ON SCHEMAS FROM PUBLIC;
DROP TABLESPACE snowflake_regress_space;
DROP ACCESS METHOD snowflake_regress_heap;

-- A template without a function: each column calls for itself, each with its own sequence.
CREATE SCHEMA per_table;
CREATE SEQUENCE per_table.users_id_seq;
CREATE TABLE per_table.users (id bigint PRIMARY KEY DEFAULT snowflake_next_id(200, 'per_table.users_id_seq'));
ALTER SEQUENCE per_table.users_id_seq OWNED BY per_table.users.id;
CREATE SEQUENCE per_table.photos_id_seq;
CREATE TABLE per_table.photos (id bigint PRIMARY KEY DEFAULT snowflake_next_id(200, 'per_table.photos_id_seq'::regclass, 0), user_id bigint REFERENCES per_table.users);
SELECT snowflake_clone_shard('per_table', 201, 'per_table_clone');
SELECT * FROM tool.differences('per_table', 'per_table_clone');
SELECT schema_name, table_name, column_name, function, shard, seq, epoch_ms FROM snowflake_columns WHERE shard IN (200, 201) ORDER BY 1, 2;

-- A body in the other notation, and a sequence that stands elsewhere.
CREATE SCHEMA atomic;
CREATE FUNCTION atomic.next_id() RETURNS bigint BEGIN ATOMIC SELECT snowflake_next_id(210, 'outside.ids', 1767225600000); END;
CREATE TABLE atomic.t (id bigint DEFAULT atomic.next_id());
SELECT snowflake_clone_shard('atomic', 211, 'atomic_clone');
SELECT pg_get_functiondef('atomic_clone.next_id'::regproc);
INSERT INTO atomic_clone.t DEFAULT VALUES RETURNING snowflake_shard(id);

-- An empty schema of the caller's own may be used, and keeps what it has been given.
CREATE SCHEMA prepared;
GRANT USAGE ON SCHEMA prepared TO snowflake_regress_app;
ALTER DEFAULT PRIVILEGES IN SCHEMA prepared GRANT SELECT ON TABLES TO snowflake_regress_app;
GRANT USAGE ON SCHEMA insta1 TO PUBLIC;
SELECT snowflake_clone_shard('insta1', 4, 'prepared');
SELECT * FROM tool.differences('insta1', 'prepared');
REVOKE USAGE ON SCHEMA insta1 FROM PUBLIC;

-- What is not copied, and what of the template the clone goes on using, is said by name.
CREATE SCHEMA rich;
SELECT snowflake_create_shard(300, 'rich') \g /dev/null
SET search_path = rich, public;
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE TYPE pair AS (a int, b int);
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
CREATE FUNCTION clean(text) RETURNS text IMMUTABLE LANGUAGE sql RETURN lower($1);
CREATE FUNCTION "notify %s"() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE FUNCTION next_code() RETURNS text LANGUAGE sql RETURN 'c' || next_id();
CREATE PROCEDURE tidy() LANGUAGE sql AS '';
CREATE AGGREGATE total (int) (SFUNC = int4pl, STYPE = int);
CREATE OPERATOR === (LEFTARG = text, RIGHTARG = text, FUNCTION = texteq);
CREATE COLLATION "my %s" FROM "C";
CREATE TABLE base (id bigint PRIMARY KEY DEFAULT next_id(), email text CHECK (clean(email) === email), m mood DEFAULT 'ok', moods mood[],
    cleaned text COLLATE "my %s" GENERATED ALWAYS AS (clean(email)) STORED, p pair, n positive, tag text DEFAULT clean('X'), tagged text DEFAULT clean('N') || next_id());
CREATE INDEX base_clean ON base (clean(email));
CREATE STATISTICS base_stat ON clean(email), id FROM base;
CREATE TABLE derived (extra int) INHERITS (base);
CREATE TABLE parted (id bigint, m mood) PARTITION BY LIST (m);
CREATE TABLE parted_ok PARTITION OF parted FOR VALUES IN ('ok');
CREATE TABLE outside.parted_sad PARTITION OF parted FOR VALUES IN ('sad');
CREATE TABLE outside.parent (id bigint, at date) PARTITION BY RANGE (at);
CREATE TABLE "part %s" PARTITION OF outside.parent DEFAULT;
CREATE VIEW "view %s" AS SELECT id FROM base;
CREATE VIEW another_view AS SELECT 1;
CREATE MATERIALIZED VIEW counted AS SELECT count(*) FROM base;
CREATE TRIGGER "trigger %s" AFTER INSERT ON base EXECUTE FUNCTION "notify %s"();
CREATE TRIGGER each_part AFTER INSERT ON parted FOR EACH ROW EXECUTE FUNCTION "notify %s"();
CREATE RULE "rule %s" AS ON DELETE TO derived DO INSTEAD NOTHING;
CREATE POLICY "policy %s" ON base USING (id > 0);
ALTER TABLE base ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE FOREIGN DATA WRAPPER snowflake_regress_fdw;
CREATE SERVER snowflake_regress_server FOREIGN DATA WRAPPER snowflake_regress_fdw;
CREATE FOREIGN TABLE far (id bigint) SERVER snowflake_regress_server;
ALTER DEFAULT PRIVILEGES FOR ROLE snowflake_regress_app IN SCHEMA rich GRANT SELECT ON TABLES TO snowflake_regress_app;
SET client_min_messages = error;
CREATE PUBLICATION snowflake_regress_tables FOR TABLE base;
CREATE PUBLICATION snowflake_regress_schema FOR TABLES IN SCHEMA rich;
RESET search_path;
RESET client_min_messages;
SELECT snowflake_clone_shard('rich', 301, 'rich_clone');
SELECT relname, relrowsecurity, relforcerowsecurity FROM pg_class WHERE oid = 'rich_clone.base'::regclass;
SELECT inhrelid::regclass, inhparent::regclass FROM pg_inherits
WHERE inhrelid IN (SELECT oid FROM pg_class WHERE relnamespace = 'rich_clone'::regnamespace);
INSERT INTO rich_clone.base (email) VALUES ('a') RETURNING snowflake_shard(id), m, cleaned, tag, snowflake_shard(ltrim(tagged, 'n')::bigint) AS tagged;
-- None of that is said of a template that has nothing of the kind.
SELECT snowflake_clone_shard('insta1', 5, 'insta5');

-- Refusals: nothing is made.
SELECT oid AS last_oid FROM pg_namespace ORDER BY oid DESC LIMIT 1 \gset
SELECT snowflake_clone_shard('missing', 400, 'refused');
SELECT snowflake_clone_shard('insta1', 8192, 'refused');
SELECT snowflake_clone_shard('insta1', -1, 'refused');
SELECT snowflake_clone_shard('insta1', 2, 'refused');
SELECT snowflake_clone_shard('insta1', 1, 'refused');
SELECT snowflake_clone_shard('insta1', 400, 'insta2');
SELECT snowflake_clone_shard('insta1', 2, 'insta2');
SELECT snowflake_clone_shard('insta1', 1, 'insta1');
SELECT snowflake_clone_shard('insta1', 400, 'pg_refused');
SELECT snowflake_clone_shard('outside', 400, 'refused');
SELECT snowflake_clone_shard('pg_catalog', 400, 'refused');
SELECT snowflake_clone_shard(NULL, 400, 'refused') IS NULL, snowflake_clone_shard('insta1', NULL, 'refused') IS NULL,
       snowflake_clone_shard('insta1', 400, NULL) IS NULL;
-- the PL/pgSQL function
CREATE SCHEMA legacy;
CREATE FUNCTION legacy.next_id() RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN 1; END';
SELECT snowflake_clone_shard('legacy', 400, 'refused');
-- a shard by setting is none of the schema's own
CREATE SCHEMA by_setting;
CREATE TABLE by_setting.t (id bigint DEFAULT snowflake_next_id());
SELECT snowflake_clone_shard('by_setting', 400, 'refused');
-- defaults that would go on making IDs of the template's shard
CREATE SCHEMA stubborn;
SELECT snowflake_create_shard(401, 'stubborn') \g /dev/null
CREATE TABLE stubborn."table %s" (id bigint, "column %s" bigint DEFAULT snowflake_next_id(401, 'stubborn.table_id_seq') + 0);
SELECT snowflake_clone_shard('stubborn', 400, 'refused');
ALTER TABLE stubborn."table %s" ALTER "column %s" SET DEFAULT snowflake_next_id(401, ('stubborn.' || 'table_id_seq')::regclass);
SELECT snowflake_clone_shard('stubborn', 400, 'refused');
CREATE FUNCTION stubborn.next_code() RETURNS text LANGUAGE sql RETURN 'c' || stubborn.next_id();
ALTER TABLE stubborn."table %s" ALTER "column %s" SET DEFAULT stubborn.next_code()::bigint;
SELECT snowflake_clone_shard('stubborn', 400, 'refused');
CREATE FUNCTION stubborn.odd_id() RETURNS bigint RETURN snowflake_next_id(401, 'stubborn.table_id_seq') | 1;
ALTER TABLE stubborn."table %s" ALTER "column %s" SET DEFAULT stubborn.odd_id();
SELECT snowflake_clone_shard('stubborn', 400, 'refused');
CREATE FUNCTION stubborn.second_id() RETURNS bigint
    BEGIN ATOMIC SELECT snowflake_next_id(401, 'stubborn.table_id_seq'); SELECT stubborn.next_id(); END;
ALTER TABLE stubborn."table %s" ALTER "column %s" SET DEFAULT stubborn.second_id();
SELECT snowflake_clone_shard('stubborn', 400, 'refused');
CREATE FUNCTION stubborn.all_ids() RETURNS SETOF bigint BEGIN ATOMIC SELECT snowflake_next_id(401, 'stubborn.table_id_seq'); END;
SET client_min_messages = warning;
DROP FUNCTION stubborn.odd_id, stubborn.second_id CASCADE;
RESET client_min_messages;
-- a name of pg_catalog's that stands before the clone's, whatever the search path
CREATE SEQUENCE stubborn.pg_class;
ALTER TABLE stubborn."table %s" ALTER "column %s" SET DEFAULT nextval('stubborn.pg_class');
SELECT snowflake_clone_shard('stubborn', 400, 'refused');
ALTER TABLE stubborn."table %s" ALTER "column %s" SET DEFAULT snowflake_next_id(401, 'stubborn.pg_class');
DROP FUNCTION stubborn.next_code();
SELECT snowflake_clone_shard('stubborn', 400, 'not refused');
SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = '"not refused"."table %s"'::regclass;
SELECT nspname FROM pg_namespace WHERE oid > :last_oid AND nspname !~ '^pg_' ORDER BY 1;

-- Anybody may clone who may read the template and make schemas.
SET client_min_messages = warning;
CREATE ROLE snowflake_regress_owner;
CREATE ROLE snowflake_regress_user;
CREATE FUNCTION tool.message(statement text) RETURNS TABLE (state text, message text, hint text) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE statement;
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT, hint = PG_EXCEPTION_HINT;
    message := replace(message, current_database(), 'DB');
    hint := replace(hint, current_database(), 'DB');
    RETURN NEXT;
END $$;
CREATE SCHEMA owned AUTHORIZATION snowflake_regress_owner;
SET ROLE snowflake_regress_owner;
SELECT snowflake_create_shard(500, 'owned') \g /dev/null
CREATE TABLE owned.users (id bigint PRIMARY KEY DEFAULT owned.next_id(), name text, secret text);
CREATE TABLE owned.photos (id bigint PRIMARY KEY DEFAULT owned.next_id(), user_id bigint REFERENCES owned.users);
GRANT SELECT ON owned.photos TO snowflake_regress_app;
RESET ROLE;
CREATE SCHEMA empty AUTHORIZATION snowflake_regress_owner;
GRANT ALL ON SCHEMA empty TO snowflake_regress_user;
RESET client_min_messages;
\set attempt 'SELECT * FROM tool.message(''SELECT snowflake_clone_shard(''''owned'''', 501, ''''owned_clone'''')'');'
SET ROLE snowflake_regress_user;
:attempt
RESET ROLE;
GRANT USAGE ON SCHEMA owned TO snowflake_regress_user;
SET ROLE snowflake_regress_user;
:attempt
RESET ROLE;
GRANT SELECT ON owned.photos TO snowflake_regress_user;
GRANT SELECT (id, name) ON owned.users TO snowflake_regress_user;
SET ROLE snowflake_regress_user;
:attempt
RESET ROLE;
GRANT SELECT ON owned.users TO snowflake_regress_user;
SET ROLE snowflake_regress_user;
:attempt
SELECT * FROM tool.message($$SELECT snowflake_clone_shard('owned', 501, 'empty')$$);
RESET ROLE;
SELECT format('GRANT CREATE ON DATABASE %I TO snowflake_regress_user, snowflake_regress_owner', current_database()) \gexec
SET ROLE snowflake_regress_user;
SELECT snowflake_clone_shard('owned', 501, 'owned_clone');
-- Its owner is who made it; what that one had been granted in the template is all the same now.
RESET ROLE;
SELECT * FROM tool.differences('owned', 'owned_clone');
SELECT DISTINCT relowner::regrole FROM pg_class WHERE relnamespace = 'owned_clone'::regnamespace;
SET ROLE snowflake_regress_owner;
SELECT count(*) FROM owned_clone.users;
SELECT snowflake_clone_shard('owned', 502, 'empty');
RESET ROLE;
-- A foreign key to another schema takes REFERENCES there.
CREATE TABLE owned.abroad (country text REFERENCES outside.countries);
ALTER TABLE owned.abroad OWNER TO snowflake_regress_owner;
SET ROLE snowflake_regress_owner;
SELECT * FROM tool.message($$SELECT snowflake_clone_shard('owned', 503, 'owned_abroad')$$);
RESET ROLE;
GRANT USAGE ON SCHEMA outside TO snowflake_regress_owner;
SET ROLE snowflake_regress_owner;
SELECT * FROM tool.message($$SELECT snowflake_clone_shard('owned', 503, 'owned_abroad')$$);
RESET ROLE;
GRANT REFERENCES (code) ON outside.countries TO snowflake_regress_owner;
SET ROLE snowflake_regress_owner;
SELECT snowflake_clone_shard('owned', 503, 'owned_abroad');
RESET ROLE;

-- What somebody puts in front of the search path is not called.
CREATE SCHEMA trap;
CREATE FUNCTION trap.format(text, VARIADIC "any") RETURNS text LANGUAGE internal AS 'text_format';
CREATE FUNCTION trap.quote_ident(name) RETURNS text LANGUAGE sql AS $$ SELECT (1 / 0)::text $$;
CREATE FUNCTION trap.now() RETURNS timestamptz LANGUAGE sql AS $$ SELECT 'infinity'::timestamptz $$;
CREATE OPERATOR trap.= (LEFTARG = oid, RIGHTARG = oid, FUNCTION = pg_catalog.oidne);
CREATE TABLE insta1.times (at timestamptz DEFAULT now() CHECK (at = at));
SET search_path = trap, pg_catalog, public;
SELECT snowflake_clone_shard('insta1', 6, 'insta6');
RESET search_path;
SELECT * FROM tool.differences('insta1', 'insta6');

-- In the transaction of the caller, but not in a snapshot of before.
BEGIN;
SELECT snowflake_clone_shard('insta1', 7, 'insta7');
SELECT snowflake_clone_shard('insta7', 8, 'insta8');
SELECT * FROM tool.differences('insta1', 'insta8');
ROLLBACK;
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT snowflake_clone_shard('insta1', 7, 'insta7');
ROLLBACK;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT snowflake_clone_shard('insta1', 7, 'insta7');
ROLLBACK;
SELECT nspname FROM pg_namespace WHERE nspname IN ('insta7', 'insta8');
BEGIN READ ONLY;
SELECT snowflake_clone_shard('insta1', 7, 'insta7');
ROLLBACK;

-- A function that makes IDs with its owner's rights does so from the sequence that came along, and from no other.
BEGIN;
CREATE FUNCTION insta1.own_id() RETURNS bigint SECURITY DEFINER RETURN snowflake_next_id(1, 'insta1.table_id_seq');
CREATE FUNCTION insta1.their_id() RETURNS bigint SECURITY DEFINER RETURN snowflake_next_id(1, 'outside.ids');
SET LOCAL client_min_messages = warning;
SELECT snowflake_clone_shard('insta1', 7, 'insta7');
SELECT proname, prosecdef FROM pg_proc WHERE pronamespace = 'insta7'::regnamespace ORDER BY proname;
ROLLBACK;

-- Where the extension is installed into the template itself, its objects are no part of it.
BEGIN;
SET LOCAL client_min_messages = warning;
DROP EXTENSION snowflake CASCADE;
CREATE SCHEMA "In %s here";
CREATE EXTENSION snowflake SCHEMA "In %s here";
SET search_path = "In %s here";
CREATE SEQUENCE table_id_seq;
CREATE FUNCTION next_id() RETURNS bigint RETURN snowflake_next_id(1, 'table_id_seq');
COMMENT ON FUNCTION next_id() IS 'next ID of shard 1';
CREATE TABLE t (id bigint PRIMARY KEY DEFAULT next_id(), s bigint DEFAULT snowflake_next_id(), d bigint DEFAULT snowflake_next_id(1, 'table_id_seq'));
SET LOCAL client_min_messages = notice;
SELECT snowflake_clone_shard('In %s here', 2, 'of the extension''s');
RESET search_path;
\d "of the extension's".*
ROLLBACK;

SET client_min_messages = warning;
DROP PUBLICATION snowflake_regress_tables, snowflake_regress_schema;
DROP SCHEMA insta1, insta2, insta3, insta5, insta6, per_table, per_table_clone, atomic, atomic_clone, prepared, rich, rich_clone,
    legacy, by_setting, stubborn, "not refused", owned, owned_clone, owned_abroad, empty, trap, outside, tool CASCADE;
DROP FOREIGN DATA WRAPPER snowflake_regress_fdw CASCADE;
DROP OWNED BY snowflake_regress_owner, snowflake_regress_user, snowflake_regress_app, "snowflake regress %I ""reader""";
DROP ROLE snowflake_regress_owner, snowflake_regress_user, snowflake_regress_app, "snowflake regress %I ""reader""";
