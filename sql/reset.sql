-- setval(sequence, max(id)), as Django, Rails and people run it after a load: a stored value of 2^53 or more is an ID.

CREATE SCHEMA reset;
SET search_path = reset, public;
CREATE TABLE orders (id bigserial PRIMARY KEY, n int);
ALTER TABLE orders ALTER COLUMN id SET DEFAULT snowflake_next_id(5, 'reset.orders_id_seq');

-- Django's sqlsequencereset, on an empty table and on a full one.
SELECT setval(pg_get_serial_sequence('"orders"','id'), coalesce(max("id"), 1), max("id") IS NOT null) FROM "orders";
INSERT INTO orders (n) SELECT generate_series(1, 1000);
SELECT max(id) AS newest FROM orders \gset
SELECT setval(pg_get_serial_sequence('"orders"','id'), coalesce(max("id"), 1), max("id") IS NOT null) = :newest AS stored FROM "orders";
-- The views and snowflake_check() read it as the ID that it is.
SELECT seq, shard, abs(extract(epoch FROM last_id_at - clock_timestamp())) < 60 AS in_time, last_counter = snowflake_seq(:newest) AS same_counter,
       abs(extract(epoch FROM lead)) < 60 AS near FROM snowflake_sequences;
SELECT * FROM snowflake_check();
CREATE VIEW next_order AS
    SELECT id > (SELECT max(id) FROM orders) AS grows, snowflake_shard(id) AS shard,
           abs(extract(epoch FROM snowflake_timestamp(id) - clock_timestamp())) < 60 AS in_time
    FROM snowflake_next_id(5, 'reset.orders_id_seq') AS id;
SELECT * FROM next_order;
SELECT last_value < 9007199254740992 AS position_again FROM orders_id_seq;

-- Rails' reset_pk_sequence!; the ID after the last one, not called; and one INSERT after each.
SELECT setval('"reset"."orders_id_seq"', :newest, true) = :newest AS stored;
INSERT INTO orders (n) VALUES (0) RETURNING id > :newest AS grows;
SELECT setval('orders_id_seq', max(id) + 1, false) > 0 AS stored FROM orders;
SELECT * FROM next_order;
INSERT INTO orders (n) VALUES (0) RETURNING id > :newest AS grows;

-- 500 rounds of reset and INSERT in one session: no ID twice, none out of order.
DO $$
DECLARE
    id bigint; last bigint := 0;
BEGIN
    FOR i IN 1..500 LOOP
        INSERT INTO orders (n) VALUES (i) RETURNING orders.id INTO id;
        IF id <= last THEN RAISE 'order'; END IF;
        last := id;
        PERFORM setval(pg_get_serial_sequence('"orders"','id'), max(o.id), i % 2 = 0) FROM orders AS o;
    END LOOP;
END $$;

-- An epoch of the caller's own; a dump restores the value with the same setval().
CREATE TABLE young (id bigserial PRIMARY KEY);
ALTER TABLE young ALTER COLUMN id SET DEFAULT snowflake_next_id(6, 'reset.young_id_seq', 1767225600000);
INSERT INTO young DEFAULT VALUES RETURNING id AS newest \gset
SELECT setval('young_id_seq', max(id)) = :newest AS stored FROM young;
SELECT setval('young_id_seq', last_value, is_called) = :newest AS restored FROM young_id_seq;
SELECT shard, epoch_ms, abs(extract(epoch FROM last_id_at - clock_timestamp())) < 60 AS in_time FROM snowflake_sequences ORDER BY shard;
SELECT * FROM snowflake_check();
INSERT INTO young DEFAULT VALUES RETURNING id > :newest AS grows, snowflake_shard(id) AS shard,
    abs(extract(epoch FROM snowflake_timestamp(id, 1767225600000) - clock_timestamp())) < 60 AS in_time;

-- IDs ahead of the clock: the sequence goes on after them, within max_drift.
SELECT setval('orders_id_seq', snowflake_encode(clock_timestamp() + '10 min', 5, 7)) AS ahead \gset
SELECT lead BETWEEN interval '9 min' AND interval '11 min' AS leads FROM snowflake_sequences WHERE shard = 5;
SELECT severity, object, regexp_replace(problem, '\d+', 'N') AS problem FROM snowflake_check();
SELECT snowflake_next_id(5, 'orders_id_seq') > :ahead AS grows;
SELECT setval('orders_id_seq', snowflake_encode('2040-01-01 UTC', 5, 7)) \g /dev/null
\set VERBOSITY sqlstate
SELECT snowflake_next_id(5, 'orders_id_seq');
\set VERBOSITY default

-- snowflake_advance() where an ID is stored: never back, and on from it.
SELECT setval('orders_id_seq', snowflake_encode(clock_timestamp() + '1 min', 5, 7)) AS stored \gset
SELECT snowflake_advance('orders_id_seq', :stored - (1 << 23)::bigint) \g /dev/null
SELECT last_value = :stored AS not_moved FROM orders_id_seq;
SELECT snowflake_advance('orders_id_seq', :stored + (1 << 23)::bigint) \g /dev/null
SELECT last_value < 9007199254740992 AS position, snowflake_next_id(5, 'orders_id_seq') > :stored + (1 << 23)::bigint AS grows FROM orders_id_seq;

-- An ID of the first thirteen days of its epoch looks like a position in the future. The hint mends that.
SELECT (extract(epoch FROM clock_timestamp() - '10 days'::interval) * 1000)::bigint AS epoch \gset
CREATE TABLE newborn (id bigserial PRIMARY KEY);
ALTER TABLE newborn ALTER COLUMN id SET DEFAULT snowflake_next_id(7, 'reset.newborn_id_seq', :epoch);
INSERT INTO newborn DEFAULT VALUES RETURNING id AS newest \gset
SELECT setval('newborn_id_seq', max(id)) = :newest AS stored, :newest < 9007199254740992 AS is_small FROM newborn;
CREATE FUNCTION message(statement text, OUT state text, OUT message text, OUT detail text, OUT hint text) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE statement;
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
END $$;
SELECT state, regexp_replace(message, '\d+', 'N') AS message, regexp_replace(detail, '\d+-\d+-\d+ [\d:.]+', 'DATE', 'g') AS detail,
       replace(hint, :'epoch', 'EPOCH') AS hint FROM message('INSERT INTO newborn DEFAULT VALUES') \gx
BEGIN; ALTER SEQUENCE reset.newborn_id_seq RESTART; SELECT snowflake_advance('reset.newborn_id_seq', max(id), :epoch) FROM newborn; COMMIT;
INSERT INTO newborn DEFAULT VALUES RETURNING id > :newest AS grows;

-- The ends: the last ID of all, the last position, the value between them.
SET snowflake.max_drift = -1;
\set VERBOSITY sqlstate
SELECT setval('orders_id_seq', 9223372036854775807) \g /dev/null
SELECT snowflake_next_id(5, 'orders_id_seq');
SELECT setval('orders_id_seq', 9007199254740991) \g /dev/null
SELECT snowflake_next_id(5, 'orders_id_seq');
SELECT snowflake_next_id(5, 'orders_id_seq', 9007199254740);
SELECT snowflake_advance('orders_id_seq', 1::bigint << 62, 8796093022207);
\set VERBOSITY default
RESET snowflake.max_drift;
SELECT setval('orders_id_seq', 9007199254740992) \g /dev/null
SELECT snowflake_timestamp(9007199254740992), snowflake_timestamp(snowflake_next_id(5, 'orders_id_seq')) > '2026-01-01' AS goes_on;

RESET search_path;
SET client_min_messages = warning;
DROP SCHEMA reset CASCADE;
