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
SELECT snowflake_next_id(1, 'numbered_n_seq') > :before AS position_is_kept;

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

-- Set back by hand: no ID of a burst comes again, however it was done, of whatever persistence.
CREATE FUNCTION burst_and(command text, name text, OUT stored bigint, OUT grows boolean) LANGUAGE plpgsql AS $$
DECLARE last bigint;
BEGIN
    SELECT max(id) INTO last FROM public.snowflake_next_ids(1, name::regclass, 100000) AS id;
    EXECUTE command;
    EXECUTE 'SELECT last_value FROM ' || name INTO stored;
    grows := public.snowflake_next_id(1, name::regclass) > last;
END $$;
CREATE SEQUENCE set_back;
CREATE UNLOGGED SEQUENCE set_back_unlogged;
CREATE TEMP SEQUENCE set_back_temp;
-- (setval() to a called value comes last: it looks like nextval(), beside which there are no bursts)
SELECT command, name, result.*
FROM unnest(ARRAY['SELECT setval(''%s'', 1, false)', 'ALTER SEQUENCE %s RESTART',
    'ALTER SEQUENCE %s RESTART WITH 9 CACHE 5', 'SELECT setval(''%s'', 1)']) WITH ORDINALITY AS c (command, n)
CROSS JOIN unnest(ARRAY['set_back', 'set_back_unlogged', 'set_back_temp']) AS name
CROSS JOIN LATERAL burst_and(format(command, name), name) AS result
ORDER BY n, name;
SELECT * FROM burst_and('TRUNCATE numbered RESTART IDENTITY', 'numbered_n_seq');
-- Nor where snowflake_advance() then goes less far than the burst did.
CREATE SEQUENCE advanced;
CREATE UNLOGGED SEQUENCE advanced_unlogged;
CREATE TEMP SEQUENCE advanced_temp;
SELECT name, grows
FROM unnest(ARRAY['advanced', 'advanced_unlogged', 'advanced_temp']) AS name
CROSS JOIN LATERAL burst_and(format('ALTER SEQUENCE %1$s RESTART;'
    'SELECT snowflake_advance(''%1$s'', snowflake_encode(clock_timestamp(), 1, 0))', name), name);
-- What setval() has put there, snowflake_advance() keeps.
CREATE SEQUENCE restored;
SELECT setval('restored', ((extract(epoch FROM clock_timestamp()) * 1000)::bigint + 3000) << 10) \g /dev/null
SELECT snowflake_encode(clock_timestamp() + '2 s', 1, 0) AS id \gset
SELECT snowflake_advance('restored', :id);
ALTER SEQUENCE restored RESTART;
SELECT snowflake_next_id(1, 'restored') > :id AS grows;

-- A file that is rolled back takes no ID along: none of a burst, none of this very millisecond.
CREATE TABLE drawn (n bigserial);
CREATE FUNCTION bursts_around(commands text[], OUT drawn bigint, OUT different bigint) LANGUAGE plpgsql AS $$
DECLARE
    command text;
    undone bigint[];
    ids bigint[];
BEGIN
    FOREACH command IN ARRAY commands LOOP
        PERFORM public.snowflake_next_ids(1, 'drawn_n_seq', 5000);
        BEGIN
            EXECUTE command;
            undone := ARRAY(SELECT public.snowflake_next_ids(1, 'drawn_n_seq', 20000));
            RAISE 'undo';
        EXCEPTION WHEN raise_exception THEN
            ids := ids || undone || ARRAY(SELECT public.snowflake_next_ids(1, 'drawn_n_seq', 20000));
        END;
    END LOOP;
    SELECT count(*), count(DISTINCT id) INTO drawn, different FROM unnest(ids) AS id;
END $$;
SELECT * FROM bursts_around('{ALTER SEQUENCE drawn_n_seq RESTART, TRUNCATE drawn RESTART IDENTITY, ALTER SEQUENCE drawn_n_seq SET UNLOGGED}');
CREATE FUNCTION draw_and_undo() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE id bigint;
BEGIN
    -- (1023: the last ID of its millisecond)
    ALTER SEQUENCE drawn_n_seq RESTART WITH 1023;
    id := public.snowflake_next_id(1, 'drawn_n_seq');
    RAISE 'undo';
EXCEPTION WHEN raise_exception THEN
    RETURN id;
END $$;
SELECT count(*), count(*) FILTER (WHERE undone < public.snowflake_next_id(1, 'drawn_n_seq')) AS grows
FROM generate_series(1, 200) AS n, LATERAL (SELECT n, draw_and_undo() AS undone OFFSET 0) AS drawn;
CREATE PROCEDURE draw_and_roll_back(INOUT grows int) LANGUAGE plpgsql AS $$
DECLARE id bigint;
BEGIN
    FOR i IN 1..200 LOOP
        ALTER SEQUENCE seqs.drawn_n_seq RESTART WITH 1023;
        id := public.snowflake_next_id(1, 'seqs.drawn_n_seq');
        ROLLBACK;
        grows := grows + (id < public.snowflake_next_id(1, 'seqs.drawn_n_seq'))::int;
    END LOOP;
END $$;
CALL draw_and_roll_back(0);

-- Further ahead than any burst is a mistake, and setval() puts it right.
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
