-- Which functions snowflake_adopt() accepts: those that make the right IDs, however they are written.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE SEQUENCE pg_temp.elsewhere;

-- In the definitions # is the shard's number, <time> the milliseconds since the default epoch, <n> the nextval()
-- of the schema's sequence. Each function is in a schema of its own.
CREATE FUNCTION pg_temp.fill_in(definition text, shard integer) RETURNS text LANGUAGE sql AS $fill$
    SELECT replace(replace(replace(definition,
        '<time>', '(floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721)'),
        '<n>', 'nextval($s$old#.table_id_seq$s$)'), '#', shard::text)
$fill$;
CREATE FUNCTION pg_temp.run(command text, shard integer) RETURNS void LANGUAGE plpgsql AS $run$
BEGIN
    EXECUTE pg_temp.fill_in(command, shard);
END $run$;
CREATE FUNCTION pg_temp.next_of(name text, shard integer) RETURNS bigint LANGUAGE plpgsql AS $next$
DECLARE
    id bigint;
BEGIN
    EXECUTE pg_temp.fill_in('SELECT old#.' || name, shard) INTO id;
    RETURN id;
END $next$;
CREATE TEMP TABLE forms (
    shard serial, form text, definition text,
    name text DEFAULT 'next_id()', arguments text DEFAULT '', epoch_ms bigint DEFAULT 1314220021721);
ALTER SEQUENCE forms_shard_seq RESTART 101;

INSERT INTO forms (form, definition) VALUES
('as published', $d$CREATE FUNCTION old#.next_id(OUT result bigint) LANGUAGE plpgsql AS $f$
    DECLARE our_epoch bigint := 1314220021721; seq_id bigint; now_millis bigint; shard_id int := #;
    BEGIN
        SELECT nextval('old#.table_id_seq') % 1024 INTO seq_id;
        SELECT FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000) INTO now_millis;
        result := (now_millis - our_epoch) << 23;
        result := result | (shard_id << 10);
        result := result | (seq_id);
    END $f$ $d$),
('RETURNS, other names', $d$CREATE FUNCTION old#.next_id() RETURNS bigint LANGUAGE plpgsql AS $f$
    DECLARE epoch CONSTANT numeric := 1314220021721; n bigint := <n>; ms bigint; server integer := #;
    BEGIN
        ms := floor(extract(epoch FROM clock_timestamp()) * 1000);
        RETURN ((ms - epoch)::bigint << 23) | (server << 10) | (n % 1024);
    END $f$ $d$),
('SQL in text', $d$CREATE FUNCTION old#.next_id() RETURNS bigint LANGUAGE sql AS $f$ SELECT <time> << 23 | (# << 10) | (<n> % 1024) $f$ $d$),
('SQL, RETURN', $d$CREATE FUNCTION old#.next_id() RETURNS bigint LANGUAGE sql RETURN <time> << 23 | (# << 10) | (<n> % 1024)$d$),
('SQL, BEGIN ATOMIC', $d$CREATE FUNCTION old#.next_id(OUT id bigint) LANGUAGE sql BEGIN ATOMIC SELECT <time> << 23 | (# << 10) | (<n> % 1024); END$d$),
('the shard in a table', $d$CREATE TABLE old#.this_shard AS SELECT # AS id;
    CREATE FUNCTION old#.next_id() RETURNS bigint LANGUAGE sql AS $f$ SELECT <time> << 23 | (id << 10) | (<n> % 1024) FROM old#.this_shard $f$ $d$),
('declared IMMUTABLE', $d$CREATE FUNCTION old#.next_id() RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS $f$
    BEGIN RETURN <time> << 23 | (# << 10) | (<n> % 1024); END $f$ $d$),
('SECURITY DEFINER', $d$CREATE FUNCTION old#.next_id() RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER AS $f$
    BEGIN RETURN <time> << 23 | (# << 10) | (<n> % 1024); END $f$ $d$),
('a search_path of its own', $d$CREATE FUNCTION old#.next_id() RETURNS bigint LANGUAGE plpgsql SET search_path = old# AS $f$
    BEGIN RETURN <time> << 23 | (# << 10) | (nextval('table_id_seq') % 1024); END $f$ $d$);
-- one expression
INSERT INTO forms (form, definition)
SELECT form, format('CREATE FUNCTION old#.next_id() RETURNS bigint LANGUAGE plpgsql AS $f$ BEGIN RETURN %s; END $f$', expression) FROM (VALUES
('float8', '(floor(date_part(''epoch'', clock_timestamp()) * 1000)::bigint - 1314220021721) << 23 | (# << 10) | (<n> % 1024)'),
('round()', '(round(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721) << 23 | (# << 10) | (<n> % 1024)'),
('a cast that rounds', '((extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721) << 23 | (# << 10) | (<n> % 1024)'),
('float8 that rounds', '((date_part(''epoch'', clock_timestamp()) * 1000)::bigint - 1314220021721) << 23 | (# << 10) | (<n> % 1024)'),
('mod(), + and *', '<time> * 8388608 + # * 1024 + mod(<n>, 1024)'),
('& 1023 of an integer', '<time> << 23 | (# << 10) | (<n>::integer & 1023)'),
('nextval() twice', '<time> << 23 | (# << 10) | ((<n> * 0 + <n>) % 1024)'),
('another sequence before', '<time> << 23 | (# << 10) | ((nextval(''pg_temp.elsewhere'') * 0 + <n>) % 1024)')) AS e(form, expression);
INSERT INTO forms (form, definition)
SELECT form, change || $d$; CREATE FUNCTION old#.next_id() RETURNS bigint LANGUAGE plpgsql AS $f$
    BEGIN RETURN <time> << 23 | (# << 10) | (<n> % 1024); END $f$ $d$ FROM (VALUES
('a cached sequence', 'ALTER SEQUENCE old#.table_id_seq CACHE 10'),
('a sequence far on', 'SELECT setval($s$old#.table_id_seq$s$, 123456789012)'),
('an ID in the sequence', 'SELECT setval($s$old#.table_id_seq$s$, snowflake_encode(now(), #, 1023))'),
('many sequences', 'CREATE SEQUENCE old#.a; CREATE SEQUENCE old#.b; SELECT nextval($s$old#.a$s$)')) AS s(form, change);
INSERT INTO forms (form, definition, epoch_ms) VALUES
('another epoch', $d$CREATE FUNCTION old#.next_id() RETURNS bigint LANGUAGE plpgsql AS $f$ BEGIN
    RETURN (<time> + 1314220021721 - 1700000000123) << 23 | (# << 10) | (<n> % 1024); END $f$ $d$, 1700000000123),
('the epoch as a date', $d$CREATE FUNCTION old#.next_id() RETURNS bigint LANGUAGE plpgsql AS $f$ BEGIN
    RETURN trunc(extract(epoch FROM clock_timestamp() - '2020-01-01 00:00:00+00') * 1000)::bigint << 23 | (# << 10) | (<n> % 1024); END $f$ $d$, 1577836800000);
INSERT INTO forms (form, definition, name) VALUES
('another name', $d$CREATE FUNCTION old#.id_generator() RETURNS bigint LANGUAGE plpgsql AS $f$
    BEGIN RETURN <time> << 23 | (# << 10) | (<n> % 1024); END $f$ $d$, 'id_generator()'),
('names in quotes', $d$CREATE SEQUENCE old#."ID seq"; CREATE FUNCTION old#."The next %s"(OUT "the ID" bigint) LANGUAGE plpgsql AS $f$
    BEGIN "the ID" := <time> << 23 | (# << 10) | (nextval('old#."ID seq"') % 1024); END $f$ $d$, '"The next %s"()');
INSERT INTO forms (form, definition, arguments) VALUES
('a sequence elsewhere', $d$CREATE SCHEMA old#s; CREATE SEQUENCE old#s.s; CREATE FUNCTION old#.next_id() RETURNS bigint LANGUAGE plpgsql AS $f$
    BEGIN RETURN <time> << 23 | (# << 10) | (nextval('old#s.s') % 1024); END $f$ $d$, ', seq => ''old#s.s'''),
('all by name', $d$CREATE FUNCTION old#.next_id() RETURNS bigint LANGUAGE plpgsql AS $f$
    BEGIN RETURN <time> << 23 | (# << 10) | (<n> % 1024); END $f$ $d$, ', seq => ''old#.table_id_seq'', epoch_ms => 1314220021721');

SELECT count(pg_temp.run('CREATE SCHEMA old#; CREATE SEQUENCE old#.table_id_seq; ' || definition, shard)) FROM forms;
CREATE TEMP TABLE last_old AS
    SELECT shard, max(pg_temp.next_of(name, shard)) AS id FROM forms, generate_series(1, 5) GROUP BY shard;
SELECT count(pg_temp.run(format('SELECT snowflake_adopt(%L, #%s)', 'old#.' || name, arguments), shard)) FROM forms;
SELECT f.shard, f.form, snowflake_shard(n.id) = f.shard AS same_shard, n.id > o.id AS above,
       abs(extract(epoch FROM snowflake_timestamp(n.id, f.epoch_ms) - clock_timestamp())) < 1 AS is_now,
       c.epoch_ms = f.epoch_ms AS same_epoch, c.seq::regclass, p.prosecdef AS definer
FROM forms AS f JOIN last_old AS o USING (shard),
     LATERAL (SELECT pg_temp.next_of(name, f.shard) AS id) AS n,
     LATERAL (SELECT * FROM pg_proc WHERE pg_proc.oid = pg_temp.fill_in('old#.' || name, shard)::regprocedure) AS p,
     snowflake_internal.call_of('pg_proc'::regclass, p.oid, 0) AS c
ORDER BY f.shard;

-- A name without a schema is looked for in the caller's search_path, as in an INSERT.
CREATE SCHEMA insta90;
CREATE SEQUENCE insta90.table_id_seq;
SELECT pg_temp.run($d$CREATE FUNCTION insta90.next_id() RETURNS bigint LANGUAGE plpgsql AS $f$
    BEGIN RETURN <time> << 23 | (# << 10) | (nextval('table_id_seq') % 1024); END $f$ $d$, 90);
SELECT snowflake_adopt('insta90.next_id()', 90);
SET search_path = insta90, public;
SELECT snowflake_adopt('next_id()', 90);
RESET search_path;
SELECT snowflake_shard(insta90.next_id());

-- Functions that make other IDs are refused, also with everything given by name. Numbers that differ from run to
-- run are shown as N.
CREATE FUNCTION pg_temp.refusal(command text) RETURNS text LANGUAGE plpgsql AS $refusal$
DECLARE
    message text;
    detail text;
    hint text;
BEGIN
    EXECUTE command;
    RETURN 'not refused';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    RETURN concat_ws(' | ', SQLSTATE, regexp_replace(message, '\d{12,}|\d{4}-\d\d-\d\d [\d:.]+', 'N', 'g'),
                     nullif(regexp_replace(detail, '(?<!>> )(?<!After )\m\d+(\.\d+)?', 'N', 'g'), ''), nullif(hint, ''));
END $refusal$;
CREATE TEMP TABLE others (shard serial, form text, expression text);
ALTER SEQUENCE others_shard_seq RESTART 201;
INSERT INTO others (form, expression) VALUES
('41/10/12, Twitter', '<time> << 22 | (# << 12) | (<n> % 4096)'),
('42/8/14', '<time> << 22 | (# << 14) | (<n> % 16384)'),
('half milliseconds', '(<time> * 2) << 23 | (# << 10) | (<n> % 1024)'),
('steps of 10 ms', '(<time> / 10 * 10) << 23 | (# << 10) | (<n> % 1024)'),
('hours', '(<time> / 3600000) << 23 | (# << 10) | (<n> % 1024)'),
('now()', '(floor(extract(epoch FROM now()) * 1000)::bigint - 1314220021721) << 23 | (# << 10) | (<n> % 1024)'),
('statement_timestamp()', '(floor(extract(epoch FROM statement_timestamp()) * 1000)::bigint - 1314220021721) << 23 | (# << 10) | (<n> % 1024)'),
('a constant', '42'),
('NULL', 'NULL'),
('NULL and a sequence', 'nullif(<n>, <n> - 1)'),
('no shard', '<time> << 23 | (<n> % 1024)'),
('another shard', '<time> << 23 | (77 << 10) | (<n> % 1024)'),
('a wider counter', '<time> << 23 | (# << 12) | (<n> % 4096)'),
('counter without a mask, |', '<time> << 23 | (# << 10) | <n>'),
('counter without a mask, +', '(<time> << 23) + (# << 10) + <n>'),
('counter % 4096', '<time> << 23 | (# << 10) | (<n> % 4096)'),
('counter % 1000', '<time> << 23 | (# << 10) | (<n> % 1000)'),
('a random counter', '<time> << 23 | (# << 10) | floor(random() * 1024)::bigint'),
('a random counter and a sequence', '<time> << 23 | (# << 10) | (floor(random() * 1023)::bigint + <n> + 1) % 1024'),
('a sequence elsewhere', '<time> << 23 | (# << 10) | (nextval(''pg_temp.elsewhere'') % 1024)'),
('two sequences in step', '<time> << 23 | (# << 10) | (nextval(''old#.second'') % 1024 | <n> % 1024)'),
('only some calls draw', '<time> << 23 | (# << 10) | (CASE WHEN lastval() > 10 THEN lastval() ELSE <n> END % 1024)'),
('slow calls', 'length(pg_sleep(0.001)::text) * 0 + (<time> << 23 | (# << 10) | (<n> % 1024)) + length(pg_sleep(0.001)::text) * 0'),
('an epoch in the future', '(<time> - 1000000000000) << 23 | (# << 10) | (<n> % 1024)'),
('the epoch 1970, overflowed', '(<time> + 1314220021721) << 23 | (# << 10) | (<n> % 1024)'),
('48/16, ms since 1970', '(<time> + 1314220021721) << 16 | (<n> & 65535)'),
('an error', '1 / (<n> * 0)');
SELECT count(pg_temp.run('CREATE SCHEMA old#; CREATE SEQUENCE old#.table_id_seq; CREATE SEQUENCE old#.second;', shard)),
       count(pg_temp.run(format('CREATE FUNCTION old#.next_id() RETURNS bigint LANGUAGE plpgsql AS $f$ BEGIN RETURN %s; END $f$', expression), shard))
FROM others;
SELECT nextval('pg_temp.elsewhere') > 0 AS drawn;
\pset format unaligned
SELECT form, pg_temp.refusal(pg_temp.fill_in('SELECT snowflake_adopt(''old#.next_id()'', #)', shard)) AS refusal FROM others ORDER BY shard;
SELECT form, pg_temp.refusal(pg_temp.fill_in(
    'SELECT snowflake_adopt(''old#.next_id()'', #, ''old#.table_id_seq'', 1314220021721)', shard)) AS refusal FROM others ORDER BY shard;
-- The number that the wider counter leaves in the shard field is not its shard either.
SELECT pg_temp.refusal(pg_temp.fill_in('SELECT snowflake_adopt(''old#.next_id()'', # * 4)', shard)) FROM others WHERE form = 'a wider counter';
-- What is given by name is not believed.
SELECT pg_temp.run($d$CREATE FUNCTION insta90.right_id() RETURNS bigint LANGUAGE plpgsql AS $f$
    BEGIN RETURN <time> << 23 | (91 << 10) | (<n> % 1024); END $f$ $d$, 201);
SELECT pg_temp.refusal('SELECT snowflake_adopt(''insta90.right_id()'', ' || arguments || ')') FROM (VALUES
    ('91'), ('91, ''old202.table_id_seq'''), ('91, ''old201.table_id_seq'', 1314220021720'), ('91, ''old201.table_id_seq'', 0'),
    ('92, ''old201.table_id_seq''')) AS a(arguments);
\pset format aligned
-- Nothing has changed.
SELECT count(*) FROM others, snowflake_internal.call_of('pg_proc'::regclass, pg_temp.fill_in('old#.next_id()', shard)::regprocedure, 0);
SELECT max(nextval(pg_temp.fill_in('old#.table_id_seq', shard)::regclass)) < 1000 AS small FROM others;

-- What the hints print works: new IDs are native and above the old ones, where they can be.
CREATE FUNCTION pg_temp.follow(shard integer) RETURNS text LANGUAGE plpgsql AS $follow$
DECLARE
    hint text;
    statement text;
    message text;
BEGIN
    BEGIN
        EXECUTE pg_temp.fill_in('CREATE TABLE old#.t (id bigint PRIMARY KEY DEFAULT old#.next_id()); INSERT INTO old#.t DEFAULT VALUES', shard);
        EXECUTE pg_temp.fill_in('SELECT snowflake_adopt(''old#.next_id()'', #)', shard);
    EXCEPTION WHEN OTHERS THEN
        GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT;
    END;
    EXECUTE pg_temp.fill_in('CREATE TABLE IF NOT EXISTS old#.t (id bigint PRIMARY KEY DEFAULT old#.next_id()); INSERT INTO old#.t DEFAULT VALUES', shard);
    FOREACH statement IN ARRAY string_to_array(hint, E'\n') LOOP
        CONTINUE WHEN statement !~ '^SELECT snowflake_attach';
        EXECUTE replace(statement, 'table, column,', pg_temp.fill_in('''old#.t'',', shard));
        EXECUTE pg_temp.fill_in('INSERT INTO old#.t DEFAULT VALUES; INSERT INTO old#.t DEFAULT VALUES', shard);
        EXECUTE pg_temp.fill_in('SELECT concat_ws('' '', count(*), ''rows, native'', count(*) FILTER (WHERE snowflake_shard(id) = # AND id > old)) FROM old#.t, (SELECT min(id) FROM old#.t) AS m(old)', shard) INTO message;
        RETURN message;
    END LOOP;
    RETURN 'no statement';
EXCEPTION WHEN OTHERS THEN
    RETURN SQLSTATE;
END $follow$;
SELECT form, pg_temp.follow(shard) FROM others WHERE form <> 'slow calls' ORDER BY shard;
-- With clock_timestamp() in place of now(), and with % 1024 after nextval(), they are adopted.
SELECT form, pg_temp.refusal(pg_temp.fill_in(format('CREATE OR REPLACE FUNCTION old#.next_id() RETURNS bigint LANGUAGE plpgsql AS $f$ BEGIN RETURN %s; END $f$;
    SELECT snowflake_adopt(''old#.next_id()'', #)', CASE WHEN form ~ 'mask' THEN replace(expression, '<n>', '<n> % 1024')
        ELSE regexp_replace(expression, '(now|statement_timestamp)\(\)', 'clock_timestamp()') END), shard))
FROM others WHERE form ~ 'now\(\)|statement_timestamp|mask' ORDER BY shard;

SELECT count(pg_temp.run('DROP SCHEMA old# CASCADE', shard)) FROM (TABLE others UNION ALL SELECT shard, form, definition FROM forms) AS s;
DROP SCHEMA insta90 CASCADE;
SELECT pg_temp.run('DROP SCHEMA old#s CASCADE', shard) FROM forms WHERE form = 'a sequence elsewhere';
