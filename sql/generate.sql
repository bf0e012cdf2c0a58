-- Making IDs: every form of the call, and what an ID says of itself.

SET timezone = 'UTC';
CREATE SCHEMA insta5;
CREATE SEQUENCE insta5.table_id_seq;

-- An ID lies between two readings of the clock, and carries shard and counter.
CREATE TEMP TABLE drawn AS
SELECT clock_timestamp() AS before, snowflake_next_id(5, 'insta5.table_id_seq') AS id;
SELECT snowflake_timestamp(id) BETWEEN date_trunc('milliseconds', before) AND clock_timestamp() AS in_time,
       snowflake_shard(id) AS shard, snowflake_seq(id) AS seq
FROM drawn;

-- The position is independent of shard and epoch; last_value holds it.
SELECT snowflake_next_id(5, 'insta5.table_id_seq') AS id \gset
SELECT last_value >> 10 = (:id >> 23) + 1314220021721 AS same_ms, last_value & 1023 = snowflake_seq(:id) AS same_counter, is_called
FROM insta5.table_id_seq;

-- A DEFAULT, by name and by OID.
CREATE TABLE insta5.photos (
    id bigint PRIMARY KEY DEFAULT snowflake_next_id(5, 'insta5.table_id_seq'),
    caption text);
INSERT INTO insta5.photos (caption) VALUES ('first') RETURNING snowflake_shard(id);
INSERT INTO insta5.photos (caption) SELECT 'n' FROM generate_series(1, 20000);
SELECT count(*), count(DISTINCT id), bool_and(snowflake_shard(id) = 5) AS shard_5 FROM insta5.photos;
SELECT 'insta5.table_id_seq'::regclass::oid AS seq \gset
SELECT snowflake_next_id(5, :seq) > (SELECT max(id) FROM insta5.photos) AS grows;
COPY insta5.photos (caption) FROM stdin;
copied
\.
SELECT count(*), count(DISTINCT id) FROM insta5.photos;

-- Order within a statement: the counter rolls by one, from 1023 to 0 too, and IDs only grow.
WITH ids AS (SELECT n, snowflake_next_id(5, 'insta5.table_id_seq') AS id FROM generate_series(1, 5000) AS n)
SELECT bool_and(id > previous) AS strictly_increasing, bool_and(snowflake_seq(id) = (snowflake_seq(previous) + 1) % 1024) AS counter_rolls
FROM (SELECT id, lag(id) OVER (ORDER BY n) AS previous FROM ids) AS pairs WHERE previous IS NOT NULL;

-- Shards 0 and 8191; two shards on one sequence share its positions.
SELECT snowflake_shard(snowflake_next_id(0, 'insta5.table_id_seq')), snowflake_shard(snowflake_next_id(8191, 'insta5.table_id_seq'));

-- Another epoch: any, as long as now is less than 2^40 ms after it.
SELECT snowflake_next_id(5, 'insta5.table_id_seq', 1288834974657) AS id \gset
SELECT abs(extract(epoch FROM snowflake_timestamp(:id, 1288834974657) - clock_timestamp())) < 5 AS in_time;
CREATE TABLE insta5.likes (id bigint DEFAULT snowflake_next_id(5, 'insta5.table_id_seq', 1767225600000));
INSERT INTO insta5.likes DEFAULT VALUES RETURNING snowflake_timestamp(id) < '2013-01-01' AS young, snowflake_timestamp(id, 1767225600000) > '2026-01-01' AS right_epoch;

-- Blocks.
SELECT count(*), count(DISTINCT id), bool_and(snowflake_shard(id) = 5) AS shard_5,
       bool_and(id > previous) FILTER (WHERE previous IS NOT NULL) AS increasing
FROM (SELECT id, lag(id) OVER (ORDER BY n) AS previous
      FROM snowflake_next_ids(5, 'insta5.table_id_seq', 10000) WITH ORDINALITY AS ids (id, n)) AS pairs;
SELECT count(*) FROM snowflake_next_ids(5, 'insta5.table_id_seq', 0);
SELECT count(*) FROM snowflake_next_ids(5, 'insta5.table_id_seq', NULL);
SELECT max(id) < snowflake_next_id(5, 'insta5.table_id_seq') AS grows FROM snowflake_next_ids(5, 'insta5.table_id_seq', 3) AS id;
-- Of another epoch, those of snowflake_next_id() with it: over the end of a block, too.
SELECT snowflake_next_id(5, 'insta5.table_id_seq', 1767225600000) AS before \gset
SELECT count(*), min(id) > :before AS above, max(id) < snowflake_next_id(5, 'insta5.table_id_seq', 1767225600000) AS below,
       bool_and(snowflake_shard(id) = 5) AS shard_5, min(snowflake_timestamp(id, 1767225600000)) > '2026-01-01' AS right_epoch
FROM snowflake_next_ids(5, 'insta5.table_id_seq', 3000, 1767225600000) AS id;
SELECT count(*) FROM snowflake_next_ids(5, 'insta5.table_id_seq', 3, NULL);
-- A query that stops early has drawn no more than the block it stopped in.
SELECT last_value AS position FROM insta5.table_id_seq \gset
SELECT count(*) FROM (SELECT snowflake_next_ids(5, 'insta5.table_id_seq', 1000000) LIMIT 3) AS few;
SELECT (last_value >> 10) - (:position >> 10) < 1000 AS no_more FROM insta5.table_id_seq;

-- advance: past every ID of that millisecond, never back.
SELECT snowflake_advance('insta5.table_id_seq', snowflake_encode(clock_timestamp() + interval '200 ms', 8191, 5)) \g /dev/null
SELECT last_value AS ahead FROM insta5.table_id_seq \gset
SELECT :ahead & 1023 AS whole_millisecond;
SELECT snowflake_advance('insta5.table_id_seq', snowflake_encode('2012-01-01', 8191, 5)) \g /dev/null
SELECT last_value = :ahead AS not_moved_back FROM insta5.table_id_seq;
SELECT snowflake_next_id(0, 'insta5.table_id_seq') > snowflake_encode('epoch'::timestamptz + (:ahead >> 10) * interval '1 ms', 8191, 1023) AS past;
SELECT snowflake_advance('insta5.table_id_seq', 5::bigint << 23, (extract(epoch FROM clock_timestamp()) * 1000)::bigint) \g /dev/null
CREATE SEQUENCE insta5.fresh;
SELECT snowflake_advance('insta5.fresh', snowflake_encode('2012-01-01', 0, 0)) \g /dev/null
SELECT last_value >> 10 = (snowflake_encode('2012-01-01', 0, 0) >> 23) + 1314220021721 AS at_past, is_called FROM insta5.fresh;

-- Without arguments: one shard per database.
SET snowflake.shard = 0;
SELECT snowflake_shard(snowflake_next_id()), snowflake_next_id() < snowflake_next_id() AS grows;
CREATE TABLE one_shard (id bigint DEFAULT snowflake_next_id(), n int);
INSERT INTO one_shard (n) SELECT generate_series(1, 100);
SELECT count(DISTINCT id) FROM one_shard;
DROP TABLE one_shard;
RESET snowflake.shard;

-- PL/pgSQL, in loops, with exceptions and with sequences that change.
DO $$
DECLARE last bigint := 0; id bigint; s text;
BEGIN
    FOR i IN 1..2000 LOOP
        s := CASE i % 2 WHEN 0 THEN 'insta5.table_id_seq' ELSE 'insta5.fresh' END;
        BEGIN
            id := snowflake_next_id(i % 8192, s::regclass);
            IF i % 10 = 0 THEN RAISE division_by_zero; END IF;
        EXCEPTION WHEN division_by_zero THEN NULL;
        END;
    END LOOP;
    FOR i IN 1..2000 LOOP
        id := snowflake_next_id(5, 'insta5.table_id_seq');
        IF id <= last THEN RAISE 'order: % after %', id, last; END IF;
        last := id;
    END LOOP;
END $$;

-- NULL in, NULL out, and nothing is drawn.
SELECT last_value AS position FROM insta5.table_id_seq \gset
SELECT snowflake_next_id(NULL, 'insta5.table_id_seq') IS NULL, snowflake_next_id(5, NULL) IS NULL,
       snowflake_next_id(5, 'insta5.table_id_seq', NULL) IS NULL, snowflake_advance('insta5.table_id_seq', NULL) IS NULL;
SELECT last_value = :position AS untouched FROM insta5.table_id_seq;

SET client_min_messages = warning;
DROP SCHEMA insta5 CASCADE;
