-- Any sequence that can hold a position, and everything that can be done to it around a call.

CREATE SCHEMA seqs;
SET search_path = seqs, public;

-- The counter goes on from what the sequence counted so far; the position jumps to now.
CREATE SEQUENCE untouched;
CREATE SEQUENCE used;
SELECT setval('used', 5000) \g /dev/null
SELECT snowflake_seq(snowflake_next_id(1, 'untouched')) AS first, snowflake_seq(snowflake_next_id(1, 'used')) = 5001 % 1024 AS rolls_on;
CREATE SEQUENCE set_not_called;
SELECT setval('set_not_called', 77, false) \g /dev/null
SELECT snowflake_seq(snowflake_next_id(1, 'set_not_called')) AS first;
CREATE SEQUENCE below_zero MINVALUE -9223372036854775808 START -9223372036854775808;
SELECT snowflake_seq(snowflake_next_id(1, 'below_zero')) AS first;

-- Temporary and unlogged sequences; names that need quotes; identity and serial columns; CACHE and CYCLE.
CREATE TEMP SEQUENCE temporary;
CREATE UNLOGGED SEQUENCE unlogged;
CREATE SEQUENCE "Wei""rd Name.é";
CREATE SEQUENCE cached CACHE 100;
CREATE SEQUENCE cycling CYCLE;
CREATE TABLE owners (a bigint GENERATED ALWAYS AS IDENTITY, b bigserial);
SELECT name, snowflake_next_id(1, name::regclass) < snowflake_next_id(1, name::regclass) AS grows
FROM unnest(ARRAY['temporary', 'unlogged', '"Wei""rd Name.é"', 'cached', 'cycling', 'owners_a_seq', 'owners_b_seq']) AS name;
BEGIN READ ONLY;
SELECT snowflake_next_id(1, 'temporary') > 0 AS temporary_is_writable;
COMMIT;

-- nextval() and setval() stay usable, and are steps of the position like any other.
SELECT snowflake_next_id(1, 'used') AS id \gset
SELECT nextval('used') = ((:id >> 23) + 1314220021721) * 1024 + (:id & 1023) + 1 AS next_position;
SELECT snowflake_next_id(1, 'used') > :id AS grows;
SELECT nextval('used') < nextval('used') AS core_grows;
SELECT last_value AS position FROM used \gset
SELECT setval('used', :position + 100) \g /dev/null
SELECT snowflake_next_id(1, 'used') > :id AS grows_past_setval;

-- ROLLBACK and ROLLBACK TO give nothing back.
SELECT last_value AS position FROM used \gset
BEGIN;
SELECT snowflake_next_id(1, 'used') AS rolled_back \gset
SAVEPOINT s;
SELECT snowflake_next_id(1, 'used') > :rolled_back AS grows;
ROLLBACK TO s;
SELECT snowflake_next_id(1, 'used') > :rolled_back AS grows;
ROLLBACK;
SELECT snowflake_next_id(1, 'used') > :rolled_back AS grows, last_value > :position + 2 AS kept FROM used;

-- A sequence that a rolled-back (sub)transaction made, while its page is in use.
BEGIN;
SAVEPOINT s;
CREATE SEQUENCE short_lived;
SELECT snowflake_next_id(1, 'short_lived') > 0 AS drawn;
ROLLBACK TO s;
SELECT snowflake_next_id(1, 'used') > 0 AS drawn;
CREATE SEQUENCE short_lived;
SELECT snowflake_next_id(1, 'short_lived') > 0 AS drawn;
ROLLBACK;
SELECT snowflake_next_id(1, 'short_lived');

-- New storage within a transaction, and the old one back.
CREATE TABLE numbered (id bigint DEFAULT 0, n bigserial);
SELECT snowflake_next_id(1, 'numbered_n_seq') AS before \gset
BEGIN;
SELECT snowflake_next_id(1, 'numbered_n_seq') > :before AS grows;
TRUNCATE numbered RESTART IDENTITY;
SELECT last_value, is_called FROM numbered_n_seq;
SELECT snowflake_next_id(1, 'numbered_n_seq') AS in_new_storage \gset
ROLLBACK;
SELECT :in_new_storage > :before AS grows, snowflake_next_id(1, 'numbered_n_seq') > :before AS old_storage_goes_on;
TRUNCATE numbered RESTART IDENTITY;
SELECT snowflake_next_id(1, 'numbered_n_seq') > :before AS grows;

BEGIN;
SELECT snowflake_next_id(1, 'used') AS id \gset
-- (once the clock has passed the last ID, the counter goes on from where it was set)
SELECT pg_sleep(0.005) \g /dev/null
ALTER SEQUENCE used RESTART WITH 9;
SELECT snowflake_seq(snowflake_next_id(1, 'used')) AS restarted_at;
ALTER SEQUENCE used INCREMENT 2;
SAVEPOINT s;
SELECT snowflake_next_id(1, 'used');
ROLLBACK TO s;
ALTER SEQUENCE used INCREMENT 1 CACHE 50;
SELECT snowflake_next_id(1, 'used') > :id AS grows;
COMMIT;
ALTER SEQUENCE unlogged SET LOGGED;
SELECT snowflake_next_id(1, 'unlogged') < snowflake_next_id(1, 'unlogged') AS grows;
ALTER SEQUENCE unlogged SET UNLOGGED;
SELECT snowflake_next_id(1, 'unlogged') < snowflake_next_id(1, 'unlogged') AS grows;

-- After whatever core writes, a burst runs at full speed: it fills its milliseconds, 1024 IDs each.
CREATE SEQUENCE burst;
CREATE FUNCTION burst_after(command text, OUT drawn bigint, OUT is_dense boolean) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE command;
    SELECT count(*), count(DISTINCT id >> 23) < 150 INTO drawn, is_dense FROM public.snowflake_next_ids(1, 'burst', 50000) AS id;
END $$;
SELECT command, burst_after.* FROM unnest(ARRAY['SELECT nextval(''burst'')', 'SELECT setval(''burst'', 5000)', 'ALTER SEQUENCE burst CACHE 1']) AS command,
     LATERAL burst_after(command);
-- In a transaction with DDL, too, which holds the lock on the sequence: a draw ahead of the clock does not wait.
SET snowflake.max_lead = '1h';
SELECT snowflake_advance('burst', snowflake_encode(clock_timestamp() + '5 min', 1, 0)) \g /dev/null
BEGIN;
ALTER SEQUENCE burst CACHE 2;
SELECT snowflake_timestamp(snowflake_next_id(1, 'burst')) > clock_timestamp() + '4 min' AS is_ahead;
COMMIT;
RESET snowflake.max_lead;

-- Further ahead than any burst is a mistake, and setval() puts it right.
CREATE SEQUENCE set_back;
SELECT snowflake_advance('set_back', snowflake_encode(clock_timestamp() + '10 min', 1, 0)) \g /dev/null
SELECT snowflake_timestamp(snowflake_next_id(1, 'set_back')) > clock_timestamp() + '9 min' AS ahead;
SELECT setval('set_back', 1) \g /dev/null
SELECT snowflake_timestamp(snowflake_next_id(1, 'set_back')) < clock_timestamp() + '1 min' AS put_right;

-- Renamed, moved, dropped, made again.
SELECT 'cached'::regclass::oid AS cached \gset
SELECT snowflake_next_id(1, :cached) AS id \gset
ALTER SEQUENCE cached RENAME TO renamed;
ALTER SEQUENCE renamed SET SCHEMA public;
SELECT snowflake_next_id(1, :cached) > :id AS grows, :cached = 'public.renamed'::regclass AS same_sequence;
DROP SEQUENCE public.renamed;
\set VERBOSITY sqlstate
SELECT snowflake_next_id(1, :cached);
\set VERBOSITY default
BEGIN;
SELECT snowflake_next_id(1, 'cycling') > 0 AS drawn;
DROP SEQUENCE cycling;
CREATE SEQUENCE cycling;
SELECT snowflake_next_id(1, 'cycling') > 0 AS drawn;
COMMIT;

-- Two-phase commit and cursors hold nothing that they should not.
DECLARE held CURSOR WITH HOLD FOR SELECT snowflake_next_id(1, 'used') > 0 AS drawn FROM generate_series(1, 3);
FETCH ALL FROM held;
CLOSE held;
BEGIN;
DECLARE open_cursor CURSOR FOR SELECT snowflake_next_id(1, 'used') > 0 AS drawn FROM generate_series(1, 3);
FETCH 1 FROM open_cursor;
SAVEPOINT s;
FETCH 1 FROM open_cursor;
ROLLBACK TO s;
SELECT snowflake_next_id(1, 'used') > 0 AS drawn;
COMMIT;

-- A procedure that commits between calls.
CREATE PROCEDURE commits() LANGUAGE plpgsql AS $$
DECLARE id bigint; last bigint := 0;
BEGIN
    FOR i IN 1..20 LOOP
        id := snowflake_next_id(1, 'seqs.used');
        IF id <= last THEN RAISE 'order'; END IF;
        last := id;
        IF i % 3 = 0 THEN ROLLBACK; ELSE COMMIT; END IF;
    END LOOP;
END $$;
CALL commits();

RESET search_path;
SET client_min_messages = warning;
DROP SCHEMA seqs CASCADE;

-- At its end, as the fence of a move or a split sets it: where the database has the record of one, nothing sets it back.
CREATE SCHEMA regress_fenced;
CREATE SEQUENCE regress_fenced.s;
CREATE FUNCTION regress_fenced.old_id() RETURNS bigint LANGUAGE sql AS $$ SELECT ((extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721) << 23 | 77 << 10 | nextval('regress_fenced.s') % 1024 $$;
CREATE TABLE regress_fenced.t (id bigint DEFAULT snowflake_next_id(77, 'regress_fenced.s'));
SELECT setval('regress_fenced.s', 9223372036854775807);
SELECT replace(problem, substring(problem, '[0-9]+'), 'N') AS problem FROM snowflake_check() WHERE object ~ 'regress_fenced';
CREATE SCHEMA snowflake_move_77;
INSERT INTO regress_fenced.t DEFAULT VALUES;
SET snowflake.max_drift = -1;
INSERT INTO regress_fenced.t DEFAULT VALUES;
RESET snowflake.max_drift;
SELECT snowflake_advance('regress_fenced.s', 1);
SELECT snowflake_adopt('regress_fenced.old_id()', 77, seq => 'regress_fenced.s');
SELECT * FROM snowflake_check() WHERE object ~ 'regress_fenced';
-- So is one of bounds that hold positions.
ALTER SEQUENCE regress_fenced.s MAXVALUE 1000000 RESTART 1000000;
INSERT INTO regress_fenced.t DEFAULT VALUES;
-- Not one that is not at its end.
ALTER SEQUENCE regress_fenced.s MAXVALUE 9007199254740991 RESTART 9007199254740990;
\set VERBOSITY sqlstate
INSERT INTO regress_fenced.t DEFAULT VALUES;
\set VERBOSITY default
DROP SCHEMA snowflake_move_77;
DROP SCHEMA regress_fenced CASCADE;
