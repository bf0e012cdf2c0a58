-- The digest of a table's rows: equal for equal rows, other for other rows, with the rights of the table's owner.
SET client_min_messages = warning;
SET DateStyle = ISO;
CREATE ROLE regress_ann;
CREATE ROLE regress_eve;
CREATE SCHEMA regress_digest AUTHORIZATION regress_ann;
CREATE SCHEMA regress_other AUTHORIZATION regress_ann;
SET ROLE regress_ann;
-- Two enums and composites whose OIDs differ. Columns in another order, and dropped ones.
CREATE TYPE regress_digest.mood AS ENUM ('sad', 'happy');
CREATE TYPE regress_other.mood AS ENUM ('sad', 'happy');
CREATE TYPE regress_digest.pair AS (a integer, b text);
CREATE TYPE regress_other.pair AS (a integer, b text);
CREATE DOMAIN regress_digest.year AS integer;
CREATE DOMAIN regress_other.year AS integer;
CREATE TABLE regress_digest.t (id bigint PRIMARY KEY, gone integer, b boolean, i2 smallint, i4 integer, f4 real, f8 float8, n numeric(30, 10),
    d date, ti time, tz timetz, ts timestamp, tstz timestamptz, iv interval, u uuid, txt text, vc varchar(20), bc char(10), c "char", by bytea,
    j json, jb jsonb, ia integer[], ta text[], mood regress_digest.mood, pair regress_digest.pair, year regress_digest.year,
    years regress_digest.year[], moods regress_digest.mood[], ip inet, r int4range, rel regtype);
ALTER TABLE regress_digest.t DROP COLUMN gone;
CREATE TABLE regress_other.t (rel regtype, r int4range, ip inet, moods regress_other.mood[], years regress_other.year[],
    year regress_other.year, pair regress_other.pair, mood regress_other.mood, ta text[], ia integer[], jb jsonb, j json, by bytea, c "char",
    bc char(10), vc varchar(20), txt text, u uuid, iv interval, tstz timestamptz, ts timestamp, tz timetz, ti time, d date, n numeric(30, 10),
    f8 float8, f4 real, i4 integer, i2 smallint, b boolean, id bigint PRIMARY KEY);
INSERT INTO regress_digest.t VALUES (1, true, 2, 3, 4.5, 5.5, 6.25, '2011-08-24', '01:02', '01:02+03', '2011-08-24 01:02', '2011-08-24 01:02+00',
    '1 mon 2 days', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', repeat('x', 100), 'vc', 'bc', 'c', '\x00ff', '{"a": 1}', '{"a": 1}', '{1,NULL,2}',
    '{a,b}', 'happy', '(1,b)', 2011, '{2011}', '{sad}', '10.0.0.1', '[1,5)', 'text');
INSERT INTO regress_digest.t (id) VALUES (2);
-- A digest depends neither on the order of rows nor on how a value is stored: compressed, external, or with a longer header.
ALTER TABLE regress_other.t ALTER txt SET STORAGE EXTERNAL;
CREATE FUNCTION regress_other.copy() RETURNS void LANGUAGE sql AS $$
    TRUNCATE regress_other.t;
    INSERT INTO regress_other.t SELECT rel, r, ip, moods::text::regress_other.mood[], years::text::regress_other.year[], year, pair::text::regress_other.pair,
        mood::text::regress_other.mood, ta, ia, jb, j, by, c, bc, vc, txt || '', u, iv, tstz, ts, tz, ti, d, n, f8, f4, i4, i2, b, id
    FROM regress_digest.t ORDER BY id DESC $$;
CREATE FUNCTION regress_other.are_equal(first regclass DEFAULT 'regress_digest.t', other regclass DEFAULT 'regress_other.t') RETURNS text
    LANGUAGE sql AS $$
    SELECT format('%s, %s and %s rows', one = two, (one).rows, (two).rows)
    FROM (SELECT snowflake_internal.digest(first) AS one, snowflake_internal.digest(other) AS two) AS s $$;
SELECT regress_other.copy();
SELECT regress_other.are_equal();
UPDATE regress_digest.t SET txt = repeat('long', 10000), by = convert_to(repeat('0', 500000), 'UTF8'), n = 1e19, ta = array_fill('x'::text, '{9999}');
SELECT regress_other.are_equal();
SELECT regress_other.copy();
SELECT regress_other.are_equal();
SELECT pg_column_size(a.txt) < pg_column_size(b.txt) AS is_compressed FROM regress_digest.t AS a JOIN regress_other.t AS b USING (id) WHERE id = 1;
-- A column that was added with a default has no value in the rows before it.
ALTER TABLE regress_digest.t ADD added integer DEFAULT 7;
ALTER TABLE regress_other.t ADD added integer;
SELECT regress_other.are_equal();
UPDATE regress_other.t SET added = 7;
SELECT regress_other.are_equal();
ALTER TABLE regress_digest.t DROP added;
ALTER TABLE regress_other.t DROP added;
-- Each change is seen: of each column to another value and to NULL.
CREATE FUNCTION regress_other.changes() RETURNS TABLE (name name, problem text) LANGUAGE plpgsql AS $$
DECLARE
    expression text;
BEGIN
    FOR name IN SELECT attname FROM pg_attribute WHERE attrelid = 'regress_other.t'::regclass AND attnum > 0 AND NOT attisdropped LOOP
        FOREACH expression IN ARRAY ARRAY['NULL', CASE
            WHEN name = 'id' THEN '77' WHEN name IN ('txt', 'vc', 'bc', 'c') THEN '''q''' WHEN name = 'ip' THEN '''10.0.0.2'''
            WHEN name IN ('i2', 'i4', 'f4', 'f8', 'n', 'year') THEN name || ' + 1' WHEN name = 'b' THEN 'NOT b'
            WHEN name IN ('d', 'ti', 'tz', 'ts', 'tstz', 'iv') THEN name || ' + interval ''1 day 1 second'''
            WHEN name = 'u' THEN '''a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12''' WHEN name = 'by' THEN '''\x00fe''' WHEN name IN ('j', 'jb') THEN '''{"a": 2}'''
            WHEN name = 'ia' THEN '''{1,2,NULL}''' WHEN name = 'ta' THEN '''{a,c}''' WHEN name = 'mood' THEN '''sad''' WHEN name = 'pair' THEN '''(2,b)'''
            WHEN name = 'years' THEN '''{2012}''' WHEN name = 'moods' THEN '''{happy}''' WHEN name = 'r' THEN '''[1,6)''' ELSE '''int4''' END]
        LOOP
            CONTINUE WHEN name = 'id' AND expression = 'NULL';
            BEGIN
                EXECUTE format('UPDATE regress_other.t SET %I = %s WHERE id = 1', name, expression);
                IF snowflake_internal.digest('regress_digest.t') = snowflake_internal.digest('regress_other.t') THEN
                    problem := expression || ' is not seen';
                    RETURN NEXT;
                END IF;
                RAISE division_by_zero;
            EXCEPTION WHEN division_by_zero THEN -- rolled back
            END;
        END LOOP;
    END LOOP;
END $$;
SELECT * FROM regress_other.changes();
SELECT regress_other.are_equal();
-- Values that are exchanged between rows or columns, NULL and an empty text, and a row that is there twice.
CREATE TABLE regress_digest.two (a bigint, b bigint, c text, d text);
CREATE TABLE regress_other.two (a bigint, b bigint, c text, d text);
INSERT INTO regress_digest.two VALUES (1, 2, 'x', NULL), (3, 4, 'y', '');
CREATE FUNCTION regress_other.two(VARIADIC rows text[]) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    TRUNCATE regress_other.two;
    INSERT INTO regress_other.two SELECT (r::regress_other.two).* FROM unnest(rows) AS r;
    RETURN regress_other.are_equal('regress_digest.two', 'regress_other.two');
END $$;
SELECT regress_other.two('(3,4,y,"")', '(1,2,x,)');
SELECT regress_other.two('(1,4,x,)', '(3,2,y,"")');
SELECT regress_other.two('(2,1,x,)', '(4,3,y,"")');
SELECT regress_other.two('(1,2,x,"")', '(3,4,y,)');
SELECT regress_other.two('(1,2,,x)', '(3,4,"",y)');
SELECT regress_other.two('(1,2,x,)', '(3,4,y,"")', '(3,4,y,"")');
SELECT regress_other.two(VARIADIC '{}');
TRUNCATE regress_digest.two;
INSERT INTO regress_digest.two VALUES (1, 2, 'x', 'x'), (1, 2, 'x', 'x');
SELECT regress_other.two('(3,4,y,y)', '(3,4,y,y)');
-- The same bytes of another type, or in a column of another name.
CREATE TABLE regress_digest.one AS SELECT 0 AS a;
CREATE TABLE regress_other.one AS SELECT date '2000-01-01' AS a;
CREATE TABLE regress_other.one_b AS SELECT 0 AS b;
SELECT regress_other.are_equal('regress_digest.one', 'regress_other.one');
SELECT regress_other.are_equal('regress_digest.one', 'regress_other.one_b');
-- Children are tables of their own; the snapshot is that of the query.
CREATE TABLE regress_digest.child () INHERITS (regress_digest.two);
INSERT INTO regress_digest.child VALUES (5, 6, 'z', 'z');
SELECT rows FROM snowflake_internal.digest('regress_digest.two');
BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY;
SELECT rows FROM snowflake_internal.digest('regress_digest.child');
COMMIT;
WITH new AS (INSERT INTO regress_digest.child VALUES (7, 8, 'z', 'z') RETURNING 1) SELECT rows FROM new, snowflake_internal.digest('regress_digest.child');
-- Only ordinary tables.
CREATE TABLE regress_digest.parts (id bigint) PARTITION BY RANGE (id);
CREATE VIEW regress_digest.v AS SELECT 1 AS id;
CREATE SEQUENCE regress_digest.s;
SELECT snowflake_internal.digest('regress_digest.parts');
SELECT snowflake_internal.digest('regress_digest.v');
SELECT snowflake_internal.digest('regress_digest.s');
SELECT snowflake_internal.digest(0);
SELECT snowflake_internal.digest(NULL);
-- Rights: those of SELECT, for all columns and rows.
CREATE TABLE regress_digest.secret (id bigint, hidden text);
INSERT INTO regress_digest.secret VALUES (1, 'a'), (2, 'b');
SET ROLE regress_eve;
SELECT snowflake_internal.digest((SELECT oid FROM pg_class WHERE relname = 'secret'));
SET ROLE regress_ann;
GRANT USAGE ON SCHEMA regress_digest TO regress_eve;
SET ROLE regress_eve;
SELECT snowflake_internal.digest('regress_digest.secret');
SET ROLE regress_ann;
GRANT SELECT (id) ON regress_digest.secret TO regress_eve;
SET ROLE regress_eve;
SELECT snowflake_internal.digest('regress_digest.secret');
SET ROLE regress_ann;
GRANT SELECT (hidden) ON regress_digest.secret TO regress_eve;
SET ROLE regress_eve;
SELECT rows FROM snowflake_internal.digest('regress_digest.secret');
SET ROLE regress_ann;
ALTER TABLE regress_digest.secret ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE FUNCTION regress_digest.hides(id bigint) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$BEGIN RAISE WARNING 'as %', current_user; RETURN false; END$$;
CREATE POLICY hides ON regress_digest.secret USING (regress_digest.hides(id));
SET ROLE regress_eve;
SELECT snowflake_internal.digest('regress_digest.secret');
SET ROLE regress_ann;
SELECT snowflake_internal.digest('regress_digest.secret');
SET row_security = off;
SELECT snowflake_internal.digest('regress_digest.secret');
RESET row_security;
-- A superuser reads all rows. No code of the owner runs, and the user and the settings are restored.
CREATE INDEX ON regress_digest.secret (regress_digest.hides(id));
RESET ROLE;
SET search_path = pg_catalog, regress_digest;
SELECT rows, current_setting('search_path'), current_user = session_user AS is_same FROM snowflake_internal.digest('secret');
RESET search_path;
-- The owner of a table needs no USAGE on its schema.
SET ROLE regress_ann;
REVOKE USAGE ON SCHEMA regress_digest FROM regress_ann;
RESET ROLE;
SELECT rows FROM snowflake_internal.digest('regress_digest.secret');
REVOKE SELECT ON regress_digest.secret FROM regress_ann;
SELECT snowflake_internal.digest('regress_digest.secret');
SELECT current_user = session_user AS is_same, current_setting('search_path');
DROP SCHEMA regress_digest, regress_other CASCADE;
DROP OWNED BY regress_ann, regress_eve;
DROP ROLE regress_ann, regress_eve;
