-- Bad input of every kind: its SQLSTATE, and the sequence as it was.

CREATE SCHEMA err;
SET search_path = err, public;
SET timezone = 'UTC';
CREATE SEQUENCE s;
CREATE SEQUENCE narrow AS integer;
CREATE SEQUENCE small MAXVALUE 1000000;
CREATE SEQUENCE by_two INCREMENT 2;
CREATE SEQUENCE downwards INCREMENT -1;
CREATE SEQUENCE ahead;
CREATE SEQUENCE far_ahead;
CREATE SEQUENCE exhausted;
CREATE SEQUENCE smallest AS smallint;
CREATE SEQUENCE closed MINVALUE 41 MAXVALUE 42;
CREATE SEQUENCE citus_1 MINVALUE 281474976710657 MAXVALUE 562949953421313;
CREATE SEQUENCE citus_6 MINVALUE 1688849860263937 MAXVALUE 1970324836974593;
CREATE TABLE t (id int PRIMARY KEY);
CREATE VIEW v AS SELECT 1;
SELECT snowflake_next_id(1, 's') > 0 \g /dev/null
SELECT setval('ahead', ((extract(epoch FROM clock_timestamp()) * 1000)::bigint + 7200000) << 10) \g /dev/null
SELECT setval('far_ahead', (1314220021721 + (1::bigint << 40)) << 10) \g /dev/null
SELECT setval('exhausted', 9223372036854775807) \g /dev/null
CREATE TABLE before AS SELECT schemaname, sequencename, last_value FROM pg_sequences WHERE schemaname = 'err';

\set VERBOSITY sqlstate
-- shard and fields: 22003
SELECT snowflake_next_id(8192, 's');
SELECT snowflake_next_id(-1, 's');
SELECT snowflake_next_id(2147483647, 's');
SELECT snowflake_next_ids(8192, 's', 1);
SELECT snowflake_next_ids(1, 's', -1);
SELECT snowflake_encode(now(), 8192, 0);
SELECT snowflake_encode(now(), -1, 0);
SELECT snowflake_encode(now(), 0, 1024);
SELECT snowflake_encode(now(), 0, -1);
SELECT snowflake_advance('s', -1);
-- not a sequence: 42809; nothing there: 42P01
SELECT snowflake_next_id(1, 't');
SELECT snowflake_next_id(1, 'v');
SELECT snowflake_next_id(1, 't_pkey');
SELECT snowflake_next_id(1, 'pg_class');
SELECT snowflake_advance('t', 1);
SELECT snowflake_next_id(1, 'missing');
SELECT snowflake_next_id(1, 0);
SELECT snowflake_next_id(1, 4294967295::oid);
SELECT snowflake_next_ids(1, 't', 1);
-- a sequence that cannot hold a position: 55000
SELECT snowflake_next_id(1, 'narrow');
SELECT snowflake_next_id(1, 'smallest');
SELECT snowflake_next_id(1, 'small');
SELECT snowflake_next_id(1, 'by_two');
SELECT snowflake_next_id(1, 'downwards');
SELECT snowflake_advance('small', snowflake_encode('2012-01-01', 0, 0));
SELECT snowflake_advance('by_two', 1);
-- a sequence that a move has closed: 25006
SELECT snowflake_next_id(1, 'closed');
SELECT snowflake_advance('closed', snowflake_encode('2012-01-01', 0, 0));
SELECT snowflake_internal.require_sequence('closed');
-- a copy on a Citus worker, of whatever node group; the clock is in the bounds of group 6: 55000
SELECT snowflake_next_id(1, 'citus_1');
SELECT snowflake_next_id(1, 'citus_6');
SELECT count(*) FROM snowflake_next_ids(1, 'citus_6', 3);
SELECT snowflake_advance('citus_6', snowflake_encode('2026-01-01', 0, 0));
SELECT snowflake_internal.require_sequence('citus_6');
-- the clock behind by more than max_drift: 55000
SELECT snowflake_next_id(1, 'ahead');
SELECT snowflake_next_id(1, 'far_ahead');
SELECT snowflake_next_id(1, 'exhausted');
-- before the epoch: 22008; past the last millisecond: 2200H
SELECT snowflake_next_id(1, 's', 4102444800000);
SELECT snowflake_next_ids(1, 's', 1, 4102444800000);
SELECT snowflake_next_id(1, 's', 9223372036854775807);
SELECT snowflake_next_id(1, 's', -9223372036854775808);
SELECT snowflake_next_id(1, 's', 0);
SET snowflake.max_drift = -1;
SELECT snowflake_next_id(1, 'far_ahead');
SELECT snowflake_next_id(1, 'exhausted');
RESET snowflake.max_drift;
SELECT snowflake_encode('2011-08-24 21:07:01.720999+00', 0, 0);
SELECT snowflake_encode('-infinity', 0, 0);
SELECT snowflake_encode('infinity', 0, 0);
SELECT snowflake_encode('2046-06-27 17:00:49.497+00', 0, 0);
SELECT snowflake_timestamp(0, 9223372036854775807);
SELECT snowflake_decode(0, -9223372036854775808);
SELECT snowflake_advance('s', 9223372036854775807);
-- the setting of the call without arguments: 55000
SELECT snowflake_next_id();
-- read-only: 25006
BEGIN READ ONLY;
SELECT snowflake_next_id(1, 's');
ROLLBACK;
BEGIN READ ONLY;
SELECT snowflake_advance('s', 1);
ROLLBACK;
BEGIN;
SELECT snowflake_next_id(1, 's') > 0;
SET TRANSACTION READ ONLY;
SELECT snowflake_next_id(1, 's');
ROLLBACK;
\set VERBOSITY default

-- Nothing but the one ID that was drawn before the transaction became read-only has moved.
SELECT sequencename FROM pg_sequences AS now JOIN before USING (schemaname, sequencename)
WHERE now.last_value IS DISTINCT FROM before.last_value ORDER BY 1;

-- The texts: what is wrong with which object, and the statement that mends it.
SELECT snowflake_next_id(8192, 's');
BEGIN READ ONLY;
SELECT snowflake_next_id(1, 's');
ROLLBACK;
SELECT snowflake_next_id(1, 't');
SELECT snowflake_next_id(1, 'narrow');
SELECT snowflake_next_id(1, 'downwards');
SELECT snowflake_encode('2046-06-27 17:00:49.497+00', 0, 0);
SELECT snowflake_encode('2011-01-01 00:00:00+00', 0, 0);
SELECT snowflake_encode('2026-01-01', 0, 5001);
SELECT snowflake_advance('s', 9223372036854775807);
SELECT snowflake_next_id();
-- ... and it does mend it. For a closed sequence there is none, nor for a copy of Citus.
SELECT snowflake_next_id(1, 'err.closed');
SELECT snowflake_next_id(1, 'err.citus_6');
SELECT snowflake_internal.require_sequence('err.citus_6');
-- Bounds that are nearly those of a copy are no copy's.
\set VERBOSITY terse
CREATE SEQUENCE err.bounded MINVALUE 1688849860263937;
SELECT snowflake_next_id(1, 'err.bounded') > 0 AS made;
SELECT format('ALTER SEQUENCE err.bounded MINVALUE %s MAXVALUE %s START %1$s RESTART', low, high), $$SELECT snowflake_next_id(1, 'err.bounded')$$
FROM (VALUES (1, 281474976710657), (281474976710656, 562949953421312), (281474976710657, 562949953421312)) AS bounds (low, high) \gexec
SELECT low, high, snowflake_internal.is_citus_copy(low, high), snowflake_internal.is_open(low, high)
FROM (VALUES (1, 281474976710657), (281474976710656, 562949953421312), (281474976710657, 562949953421312), (281474976710657, 562949953421313),
             (9223090561878065153, 9223372036854775807), (8725724278030337, 9007199254740993), (41, 42), (1, 9223372036854775807),
             (-9223372036854775808, 9223372036854775807), (-9223372036854775808, -1)) AS bounds (low, high);
\set VERBOSITY default
ALTER SEQUENCE err.narrow AS bigint INCREMENT BY 1 NO MAXVALUE;
ALTER SEQUENCE err.small AS bigint INCREMENT BY 1 NO MAXVALUE;
ALTER SEQUENCE err.by_two AS bigint INCREMENT BY 1 NO MAXVALUE;
ALTER SEQUENCE err.downwards AS bigint INCREMENT BY 1 NO MAXVALUE;
SELECT name, snowflake_next_id(1, name::regclass) > 0 AS made FROM unnest(ARRAY['narrow', 'small', 'by_two', 'downwards']) AS name;

-- Errors with numbers of the moment, the numbers taken out.
CREATE FUNCTION message(statement text) RETURNS TABLE (message text, detail text, hint text) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE statement;
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    message := regexp_replace(message, '\d{4}-\d\d-\d\d [\d:.]+', 'NOW', 'g');
    message := regexp_replace(message, '\d{2,}', '#', 'g');
    detail := regexp_replace(detail, '\d{4}-\d\d-\d\d [\d:.]+', 'DATE', 'g');
    RETURN NEXT;
END $$;
\x on
SELECT * FROM message($$SELECT snowflake_next_id(1, 'ahead')$$);
SELECT * FROM message($$SELECT snowflake_next_id(1, 's', 4102444800000)$$);
SELECT * FROM message($$SELECT snowflake_next_id(1, 's', 0)$$);
\x off

-- An ID from the future: the sequence goes there, warns that it is out of reach, and says how to undo it.
SET client_min_messages = error;
SELECT snowflake_advance('s', snowflake_encode('2040-01-01', 0, 0)) \g /dev/null
RESET client_min_messages;
\set VERBOSITY sqlstate
SELECT snowflake_next_id(1, 's');
\set VERBOSITY default
SELECT setval('s', 1) \g /dev/null
SELECT snowflake_next_id(1, 's') > 0 AS undone;

RESET search_path;
SET client_min_messages = warning;
DROP SCHEMA err CASCADE;
