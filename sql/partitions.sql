-- Partitions by time on a bigint ID: their bounds, names and epochs, what is refused, and pruning.

SET timezone = 'UTC';
SET datestyle = ISO;
SET intervalstyle = postgres;
SET client_min_messages = warning;
CREATE SCHEMA part;
SET search_path = part, public;

-- What a table has, in the order of its IDs.
CREATE FUNCTION shown(parent regclass, epoch_ms bigint DEFAULT NULL)
    RETURNS TABLE (partition regclass, from_ts timestamptz, to_ts timestamptz) LANGUAGE sql AS $$
    SELECT i.inhrelid::regclass, b.* FROM pg_inherits AS i, snowflake_partition_bounds(i.inhrelid, $2) AS b
    WHERE i.inhparent = $1 ORDER BY b.from_ts, i.inhrelid::regclass::text COLLATE "C"
$$;
-- The error of a statement.
CREATE FUNCTION error_of(statement text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    state text; message text; detail text; hint text;
BEGIN
    EXECUTE statement;
    RETURN NEXT 'no error';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    RETURN NEXT state || ' ' || message;
    RETURN QUERY SELECT label || text FROM (VALUES ('DETAIL: ', detail), ('HINT: ', hint)) AS v(label, text) WHERE text <> '';
END $$;

CREATE SEQUENCE ids;
CREATE TABLE events (id bigint PRIMARY KEY DEFAULT snowflake_next_id(3, 'part.ids'), body text) PARTITION BY RANGE (id);

-- Months. The last one ends at or after to_ts.
SELECT snowflake_create_partitions('events', '2024-01-01', '2024-03-15', '1 month');
SELECT * FROM shown('events');
SELECT pg_get_expr(c.relpartbound, c.oid) = format('FOR VALUES FROM (%L) TO (%L)', snowflake_min_id('2024-02-01'), snowflake_min_id('2024-03-01')) AS exact
FROM pg_class AS c WHERE c.oid = 'events_2024_02'::regclass;
-- What is there is skipped.
SELECT snowflake_create_partitions('events', '2024-01-01', '2024-04-01', '1 month');
SELECT snowflake_create_partitions('events', '2023-12-01', '2024-05-01', '1 month');
INSERT INTO events (id, body) SELECT snowflake_encode(t, 3, 1), t::date::text
FROM unnest('{2023-12-31 23:59:59.999,2024-01-01,2024-02-29 23:59:59.999,2024-03-01,2024-04-30 23:59:59.999}'::timestamptz[]) AS t;
SELECT tableoid::regclass, body FROM events ORDER BY id;

-- An overlap is refused with the partition's name, and nothing is made.
SELECT error_of($$SELECT snowflake_create_partitions('events', '2023-11-15', '2024-02-01', '1 month')$$);
SELECT error_of($$SELECT snowflake_create_partitions('events', '2024-03-01', '2024-04-01', '1 day')$$);
SELECT error_of($$SELECT snowflake_create_partitions('events', '2024-01-01', '2025-01-01', '1 year')$$);
SELECT count(*) FROM shown('events');

-- The planner prunes by the two comparisons, when it plans ...
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_indexonlyscan = off;
EXPLAIN (COSTS OFF) SELECT * FROM events WHERE id >= snowflake_min_id('2024-02-01') AND id < snowflake_min_id('2024-03-01');
EXPLAIN (COSTS OFF) SELECT * FROM events WHERE id >= snowflake_min_id('2024-03-31') ORDER BY id;
EXPLAIN (COSTS OFF) SELECT * FROM events WHERE id <= snowflake_max_id('2024-01-01');
-- ... or when it runs: a parameter of a generic plan, a function that is stable.
SET plan_cache_mode = force_generic_plan;
PREPARE since(timestamptz, timestamptz) AS SELECT * FROM events WHERE id >= snowflake_min_id($1) AND id < snowflake_min_id($2);
EXPLAIN (COSTS OFF) EXECUTE since('2024-02-01', '2024-02-02');
DEALLOCATE since;
RESET plan_cache_mode;
EXPLAIN (COSTS OFF) SELECT * FROM events WHERE id < snowflake_min_id(now() - now() + timestamptz '2024-01-01');
-- snowflake_between() prunes nothing: it uses the index of each partition.
EXPLAIN (COSTS OFF) SELECT * FROM events WHERE snowflake_between(id, '2024-02-01', '2024-03-01');
RESET enable_seqscan;
RESET enable_bitmapscan;
RESET enable_indexonlyscan;

-- A calendar's steps. Each is counted from the first.
CREATE TABLE calendar (id bigint DEFAULT snowflake_next_id(3, 'part.ids')) PARTITION BY RANGE (id);
BEGIN;
SELECT snowflake_create_partitions('calendar', '2024-01-31', '2024-05-01', '1 month');
SELECT * FROM shown('calendar');
ROLLBACK;
BEGIN;
SELECT snowflake_create_partitions('calendar', '2023-01-01', '2025-01-01', '1 year');
SELECT snowflake_create_partitions('calendar', '2025-05-01', '2026-01-01', '3 months');
SELECT snowflake_create_partitions('calendar', '2026-05-04', '2026-05-18', '1 week');
SELECT snowflake_create_partitions('calendar', '2026-06-01', '2026-06-02', '12 hours');
SELECT snowflake_create_partitions('calendar', '2026-07-01 08:00', '2026-07-01 08:01', '30 seconds');
ROLLBACK;

-- Days of a time zone have 23, 24 and 25 hours. Of two equal hours the first is named in UTC.
BEGIN;
SET LOCAL timezone = 'Europe/Berlin';
SELECT snowflake_create_partitions('calendar', '2024-03-30', '2024-04-02', '1 day');
SELECT *, to_ts - from_ts AS length FROM shown('calendar');
SELECT snowflake_create_partitions('calendar', '2024-10-27 01:00+02', '2024-10-27 04:00+01', '1 hour');
SELECT * FROM shown('calendar') WHERE from_ts > '2024-10-01';
-- The months of another zone overlap.
SELECT snowflake_create_partitions('calendar', '2024-11-01', '2024-12-01', '1 month');
SET LOCAL timezone = 'UTC';
SELECT error_of($$SELECT snowflake_create_partitions('calendar', '2024-11-01', '2024-12-01', '1 month')$$);
ROLLBACK;
-- A day without midnight; a day that a zone has left out.
BEGIN;
SET LOCAL timezone = 'America/Sao_Paulo';
SELECT snowflake_create_partitions('calendar', '2018-11-03', '2018-11-06', '1 day');
SET LOCAL timezone = 'Pacific/Apia';
SELECT snowflake_create_partitions('calendar', '2011-12-29', '2012-01-01', '1 day');
SELECT *, to_ts - from_ts AS length FROM shown('calendar');
ROLLBACK;

-- Steps and times that make no partitions.
SELECT step, e FROM unnest('{0,-1 month,1 month -1 day,1 month 1 day,1 day 12:00,1.5 months,0.5 seconds,1 day -1 second}'::interval[]) AS step,
    error_of(format('SELECT snowflake_create_partitions(%L, %L, %L, %L)', 'calendar', '2024-01-01', '2025-01-01', step)) AS e
WHERE e !~ '^(DETAIL|HINT)';
SELECT error_of($$SELECT snowflake_create_partitions('calendar', '2024-01-01', '2025-01-01', '-1 day')$$);
-- (before 17 no interval is infinite)
SELECT left(min(e), 2) FROM error_of($$SELECT snowflake_create_partitions('calendar', '2024-01-01', '2025-01-01', 'infinity')$$) AS e WHERE e ~ '^22';
SELECT from_ts, to_ts, e
FROM (VALUES ('-infinity', '2024-01-01'), ('2024-01-01', 'infinity'), ('2024-01-01', '2024-01-01'), ('2024-02-01', '2024-01-01'),
             ('2024-01-01 00:00:00.5', '2024-02-01'), ('2011-07-01', '2011-08-01'), ('2046-01-01', '2047-01-01')) AS v(from_ts, to_ts),
     error_of(format('SELECT snowflake_create_partitions(%L, %L, %L, %L)', 'calendar', from_ts, to_ts, '1 month')) AS e;
SELECT e FROM (VALUES ('NULL', 'now()', 'now()', '1 day'), ('''calendar''', 'NULL', 'now()', '1 day'), ('''calendar''', 'now()', 'NULL', '1 day')) AS v(a, b, c, d),
     error_of(format('SELECT snowflake_create_partitions(%s, %s, %s, %L)', a, b, c, d)) AS e;
-- No more than 10,000 steps, which is found out before the table is locked. A job can go on where they end.
BEGIN;
SELECT error_of($$SELECT snowflake_create_partitions('calendar', '2012-01-01', '2046-01-01', '1 second')$$);
SELECT error_of($$SELECT snowflake_internal.partition_require_period('2024-01-01', '2024-01-01 02:46:40', '1 second', 1314220021721)$$);
SELECT error_of($$SELECT snowflake_internal.partition_require_period('2024-01-01', '2024-01-01 02:46:41', '1 second', 1314220021721)$$);
SELECT e FROM unnest('{2 hours,1 day,8765 hours,1 month}'::interval[]) AS step,
    error_of(format('SELECT snowflake_internal.partition_require_period(%L, %L, %L, 1314220021721)', '2012-01-01', '2046-01-01', step)) AS e;
SELECT count(*) FROM pg_locks WHERE relation = 'calendar'::regclass AND mode = 'ShareUpdateExclusiveLock';
ROLLBACK;
SELECT count(*) FROM shown('calendar');
-- The epoch begins, and ends, within a partition.
BEGIN;
SELECT snowflake_create_partitions('calendar', '2011-08-01', '2011-10-01', '1 month');
SELECT snowflake_create_partitions('calendar', '2046-06-01', '2046-06-27', '1 month');
SELECT * FROM shown('calendar');
ROLLBACK;

-- Rows of the default partition that belong into a new one are said, with the statements that move them.
CREATE TABLE kept (id bigint PRIMARY KEY DEFAULT snowflake_next_id(3, 'part.ids'), body text, dropped int,
    "Made at" timestamptz GENERATED ALWAYS AS (snowflake_timestamp(id)) STORED) PARTITION BY RANGE (id);
ALTER TABLE kept DROP dropped;
CREATE TABLE kept_rest PARTITION OF kept DEFAULT;
INSERT INTO kept (id, body) SELECT snowflake_encode(t, 3, 1), t::date::text FROM unnest('{2024-01-15,2024-02-15,2024-06-15}'::timestamptz[]) AS t;
SELECT snowflake_create_partitions('kept', '2024-04-01', '2024-05-01', '1 month');
SELECT error_of($$SELECT snowflake_create_partitions('kept', '2024-01-01', '2024-03-01', '1 month')$$);
SELECT regexp_replace(e, '^HINT: Move them:', '') AS statements FROM error_of($$SELECT snowflake_create_partitions('kept', '2024-01-01', '2024-03-01', '1 month')$$) AS e
WHERE e ~ '^HINT' \gset
:statements
SELECT tableoid::regclass, body, "Made at" FROM kept ORDER BY id;
SELECT * FROM shown('kept');

-- Without an index, and in partitions of the default partition, rows are found, too; not the NULLs, nor rows beside the period.
CREATE TABLE bare (id bigint DEFAULT snowflake_next_id(3, 'part.ids')) PARTITION BY RANGE (id);
CREATE TABLE bare_rest PARTITION OF bare DEFAULT PARTITION BY RANGE (id);
CREATE TABLE bare_rest_rest (other text, id bigint);
ALTER TABLE bare_rest_rest DROP other;
ALTER TABLE bare_rest ATTACH PARTITION bare_rest_rest DEFAULT;
INSERT INTO bare VALUES (NULL), (snowflake_encode('2023-12-31 23:59:59.999', 3, 1023)), (snowflake_encode('2024-03-01', 0, 0));
SELECT snowflake_create_partitions('bare', '2024-01-01', '2024-02-01', '1 month');
INSERT INTO bare VALUES (snowflake_encode('2024-02-29 23:59:59.999', 3, 1023));
SELECT e FROM error_of($$SELECT snowflake_create_partitions('bare', '2024-02-01', '2024-03-01', '1 month')$$) AS e WHERE e !~ 'HINT';

-- A partition has what its parent has, also its owner.
CREATE ROLE snowflake_regress_part;
CREATE ROLE snowflake_regress_part_other;
GRANT ALL ON SCHEMA part TO snowflake_regress_part, snowflake_regress_part_other;
GRANT USAGE ON SEQUENCE ids TO snowflake_regress_part;
CREATE TABLE owners (id bigint PRIMARY KEY);
CREATE TABLE full_of (id bigint PRIMARY KEY DEFAULT snowflake_next_id(3, 'part.ids'), owner bigint REFERENCES owners,
    n int NOT NULL DEFAULT 7 CHECK (n > 0), twice int GENERATED ALWAYS AS (n * 2) STORED, u uuid) PARTITION BY RANGE (id);
CREATE INDEX ON full_of (owner);
CREATE FUNCTION noted() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN NEW.n := NEW.n + 1; RETURN NEW; END$$;
CREATE TRIGGER noted BEFORE INSERT ON full_of FOR EACH ROW EXECUTE FUNCTION noted();
ALTER TABLE full_of OWNER TO snowflake_regress_part;
GRANT SELECT ON owners TO snowflake_regress_part;
SELECT snowflake_create_partitions('full_of', '2024-01-01', '2024-02-01', '1 month');
CREATE TABLE of_core PARTITION OF full_of FOR VALUES FROM (0) TO (1);
SELECT a.conname, a.contype, pg_get_constraintdef(a.oid) FROM pg_constraint AS a
WHERE a.conrelid = 'full_of_2024_01'::regclass AND a.contype <> 'n' ORDER BY 1;
SELECT c.relname, CASE WHEN pg_get_userbyid(c.relowner) = current_user THEN 'the role of the test' ELSE pg_get_userbyid(c.relowner) END AS owner,
       (SELECT string_agg(pg_get_indexdef(i.indexrelid) , E'\n' ORDER BY i.indexrelid::regclass::text COLLATE "C") FROM pg_index AS i WHERE i.indrelid = c.oid) AS indexes,
       (SELECT string_agg(t.tgname, ',') FROM pg_trigger AS t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal) AS triggers,
       (SELECT string_agg(concat_ws(' ', a.attname, a.attnotnull, pg_get_expr(d.adbin, d.adrelid)), ', ' ORDER BY a.attnum)
        FROM pg_attribute AS a LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum WHERE a.attrelid = c.oid AND a.attnum > 0) AS columns
FROM pg_class AS c WHERE c.oid IN ('full_of_2024_01'::regclass, 'of_core'::regclass) ORDER BY 1 \gx

-- Who is not the owner; a transaction that is read-only.
SET ROLE snowflake_regress_part_other;
SELECT error_of($$SELECT snowflake_create_partitions('part.full_of', '2024-02-01', '2024-03-01', '1 month')$$);
SELECT * FROM snowflake_partition_bounds('full_of_2024_01');
SET ROLE snowflake_regress_part;
SELECT snowflake_create_partitions('part.full_of', '2024-02-01', '2024-03-01', '1 month');
RESET ROLE;
BEGIN READ ONLY;
SELECT error_of($$SELECT snowflake_create_partitions('part.full_of', '2024-01-01', '2024-04-01', '1 month')$$);
SELECT * FROM snowflake_partition_bounds('full_of_2024_01');
ROLLBACK;
DROP OWNED BY snowflake_regress_part, snowflake_regress_part_other;
DROP ROLE snowflake_regress_part, snowflake_regress_part_other;

-- Names: in the schema of the table, quoted, taken, too long.
CREATE TABLE "My %s Table" (id bigint DEFAULT snowflake_next_id(3, 'part.ids')) PARTITION BY RANGE (id);
SET search_path = public;
SELECT snowflake_create_partitions('part."My %s Table"', '2024-01-01', '2024-02-01', '1 month');
SET search_path = part, public;
DROP TABLE "My %s Table";
CREATE TABLE calendar_2024_02 (LIKE calendar INCLUDING ALL);
SELECT error_of($$SELECT snowflake_create_partitions('calendar', '2024-01-01', '2024-04-01', '1 month')$$);
CREATE VIEW calendar_2024_03 AS SELECT 1 AS one;
SELECT error_of($$SELECT snowflake_create_partitions('calendar', '2024-03-01', '2024-04-01', '1 month')$$);
DROP VIEW calendar_2024_03;
-- One that is there with the bounds is skipped whatever its name is.
SELECT format('ALTER TABLE calendar ATTACH PARTITION calendar_2024_02 FOR VALUES FROM (%s) TO (%s)', snowflake_min_id('2024-02-01'), snowflake_min_id('2024-03-01')) \gexec
ALTER TABLE calendar_2024_02 RENAME TO february;
SELECT snowflake_create_partitions('calendar', '2024-01-01', '2024-04-01', '1 month');
SELECT repeat('ä', 28) AS long \gset
CREATE TABLE :long (id bigint DEFAULT snowflake_next_id(3, 'part.ids')) PARTITION BY RANGE (id);
SELECT error_of(format('SELECT snowflake_create_partitions(%L, %L, %L, %L)', :'long', '2024-01-01', '2024-02-01', '1 month'));
SELECT octet_length(snowflake_create_partitions(:'long', '2024-01-01', '2025-01-01', '1 year')::text);
DROP TABLE :long;

-- The epoch is that of the DEFAULT, also one that comes through a function.
CREATE TABLE later (id bigint DEFAULT snowflake_next_id(3, 'part.ids', 1700000000000)) PARTITION BY RANGE (id);
SELECT snowflake_create_partitions('later', '2024-01-01', '2024-02-01', '1 month');
SELECT lower(ids) = snowflake_min_id('2024-01-01', 1700000000000) AS is_of_epoch FROM snowflake_internal.partitions('later');
SELECT * FROM snowflake_partition_bounds('later_2024_01');
SELECT * FROM snowflake_partition_bounds('later_2024_01', 1700000000000);
SELECT error_of($$SELECT snowflake_create_partitions('later', '2024-02-01', '2024-03-01', '1 month', 1314220021721)$$);
SELECT error_of($$SELECT snowflake_partition_bounds('later_2024_01', 1314220021721)$$);
SELECT error_of($$SELECT snowflake_create_partitions('later', '2023-01-01', '2023-11-01', '1 month')$$);
SELECT snowflake_create_shard(31, 'part31', 1700000000000);
CREATE TABLE part31.visits (id bigint DEFAULT part31.next_id()) PARTITION BY RANGE (id);
SELECT snowflake_create_partitions('part31.visits', '2024-01-01', '2025-01-01', '1 year');
SELECT * FROM shown('part31.visits', 1700000000000);
SET snowflake.shard = 4;
CREATE TABLE by_setting (id bigint DEFAULT snowflake_next_id()) PARTITION BY RANGE (id);
SELECT snowflake_create_partitions('by_setting', '2024-01-01', '2025-01-01', '1 year');
RESET snowflake.shard;
-- Without a DEFAULT, or with one that does not tell, it must be given.
CREATE TABLE elsewhere (id bigint) PARTITION BY RANGE (id);
SELECT error_of($$SELECT snowflake_create_partitions('elsewhere', '2024-01-01', '2024-02-01', '1 month')$$);
SELECT snowflake_create_partitions('elsewhere', '2024-01-01', '2024-02-01', '1 month', epoch_ms => 1314220021721);
SELECT error_of($$SELECT snowflake_partition_bounds('elsewhere_2024_01')$$);
SELECT * FROM shown('elsewhere', 1314220021721);
CREATE TABLE serial_ids (id bigserial) PARTITION BY RANGE (id);
SELECT error_of($$SELECT snowflake_create_partitions('serial_ids', '2024-01-01', '2024-02-01', '1 month')$$);
CREATE TABLE unknown_epoch (id bigint DEFAULT snowflake_next_id(3, 'part.ids', 1700000000000 + length(current_user) * 0)) PARTITION BY RANGE (id);
SELECT error_of($$SELECT snowflake_create_partitions('unknown_epoch', '2024-01-01', '2024-02-01', '1 month')$$);
SELECT snowflake_create_partitions('unknown_epoch', '2024-01-01', '2024-02-01', '1 month', 1700000000000);
CREATE TABLE two_epochs (id bigint DEFAULT CASE WHEN random() < 0.5 THEN snowflake_next_id(3, 'part.ids', 1700000000000) ELSE snowflake_next_id(3, 'part.ids') END)
    PARTITION BY RANGE (id);
SELECT error_of($$SELECT snowflake_create_partitions('two_epochs', '2024-01-01', '2024-02-01', '1 month')$$);
SELECT error_of($$SELECT snowflake_create_partitions('two_epochs', '2024-01-01', '2024-02-01', '1 month', 1700000000000)$$);
-- An epoch in seconds.
SELECT error_of($$SELECT snowflake_create_partitions('elsewhere', '2024-01-01', '2024-02-01', '1 month', 1314220021)$$);

-- Partitions of partitions: a LIST above, months below a year.
CREATE TABLE tenants (tenant int, id bigint DEFAULT snowflake_next_id(3, 'part.ids')) PARTITION BY LIST (tenant);
CREATE TABLE tenants_1 PARTITION OF tenants FOR VALUES IN (1) PARTITION BY RANGE (id);
ALTER TABLE tenants_1 ALTER id DROP DEFAULT; -- that of the root counts
SELECT snowflake_create_partitions('tenants_1', '2024-01-01', '2024-03-01', '1 month');
SELECT error_of($$SELECT snowflake_create_partitions('tenants', '2024-01-01', '2024-03-01', '1 month')$$);
SELECT error_of($$SELECT snowflake_partition_bounds('tenants_1')$$);
INSERT INTO tenants VALUES (1, snowflake_encode('2024-02-03', 3, 1));
EXPLAIN (COSTS OFF) SELECT * FROM tenants WHERE tenant = 1 AND id >= snowflake_min_id('2024-02-01');
CREATE TABLE years (id bigint DEFAULT snowflake_next_id(3, 'part.ids')) PARTITION BY RANGE (id);
SELECT format('CREATE TABLE years_2024 PARTITION OF years FOR VALUES FROM (%s) TO (%s) PARTITION BY RANGE (id)',
              snowflake_min_id('2024-01-01'), snowflake_min_id('2025-01-01')) \gexec
SELECT snowflake_create_partitions('years_2024', '2024-01-01', '2024-03-01', '1 month');
SELECT snowflake_create_partitions('years', '2024-01-01', '2026-01-01', '1 year');
SELECT * FROM shown('years') UNION ALL SELECT * FROM shown('years_2024');

-- What is no table partitioned by RANGE of one bigint column, and what is no partition.
CREATE TABLE plain (id bigint);
CREATE TABLE by_hash (id bigint) PARTITION BY HASH (id);
CREATE TABLE by_two (id bigint, n int) PARTITION BY RANGE (id, n);
CREATE TABLE by_integer (id integer) PARTITION BY RANGE (id);
CREATE TABLE by_time (id bigint) PARTITION BY RANGE ((snowflake_timestamp(id)));
SELECT tbl, e FROM unnest('{plain,by_hash,by_two,by_integer,by_time,ids,4294967295}'::text[]) AS tbl,
    error_of(format('SELECT snowflake_create_partitions(%L, %L, %L, %L)', tbl, '2024-01-01', '2024-02-01', '1 month')) AS e;
SELECT e FROM unnest('{events,plain,by_hash,4294967295,NULL}'::text[]) AS tbl, error_of(format('SELECT snowflake_partition_bounds(%L)', tbl)) AS e;
CREATE DOMAIN event_id AS bigint;
CREATE TABLE by_domain (id event_id DEFAULT snowflake_next_id(3, 'part.ids')) PARTITION BY RANGE (id);
SELECT snowflake_create_partitions('by_domain', '2024-01-01', '2024-02-01', '1 month');

-- Bounds that somebody else has made: open ones, negative ones, the default partition's, ones within a millisecond.
CREATE TABLE others (id bigint DEFAULT snowflake_next_id(3, 'part.ids')) PARTITION BY RANGE (id);
CREATE TABLE others_default PARTITION OF others DEFAULT;
CREATE TABLE others_below PARTITION OF others FOR VALUES FROM (MINVALUE) TO (-5);
CREATE TABLE others_past PARTITION OF others FOR VALUES FROM (-5) TO (8388609);
CREATE TABLE others_future PARTITION OF others FOR VALUES FROM (4611686018427387904) TO (MAXVALUE);
SELECT * FROM shown('others');
SELECT error_of($$SELECT snowflake_create_partitions('others', '2040-01-01', '2041-01-01', '1 year')$$);
SELECT error_of($$SELECT snowflake_create_partitions('others', '2011-08-01', '2011-09-01', '1 month')$$);
SELECT snowflake_create_partitions('others', '2024-01-01', '2025-01-01', '1 year');

-- A call reads the rows of the default partition once, also where it is partitioned, and leaves nothing there.
CREATE TABLE once (id bigint PRIMARY KEY DEFAULT snowflake_next_id(3, 'part.ids')) PARTITION BY RANGE (id);
CREATE TABLE once_default PARTITION OF once DEFAULT PARTITION BY HASH (id);
CREATE TABLE once_0 PARTITION OF once_default FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE once_1 PARTITION OF once_default FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO once SELECT snowflake_encode('2020-01-01', 3, n) FROM generate_series(1, 100) AS n;
BEGIN;
SELECT count(*) FROM snowflake_create_partitions('once', '2024-01-01', '2024-01-06', '1 day');
SELECT sum(seq_tup_read) FROM pg_stat_xact_user_tables WHERE relname IN ('once_0', 'once_1');
COMMIT;
SELECT conrelid::regclass, conname FROM pg_constraint WHERE conrelid::regclass::text ~ '^once_(default|[01]$)' AND contype = 'c';
-- With deferred triggers on its rows ALTER TABLE refuses, and each partition reads them.
CREATE TABLE refers (id bigint REFERENCES once DEFERRABLE INITIALLY DEFERRED, n bigint) PARTITION BY RANGE (n);
CREATE TABLE refers_default PARTITION OF refers DEFAULT;
BEGIN;
INSERT INTO refers SELECT id, 0 FROM once;
SELECT count(*) FROM snowflake_create_partitions('refers', '2024-01-01', '2024-01-03', '1 day', 1314220021721);
ROLLBACK;
DROP TABLE refers, once;

-- A temporary table.
CREATE TEMP TABLE passing (id bigint DEFAULT snowflake_next_id(3, 'part.ids')) PARTITION BY RANGE (id);
SELECT snowflake_create_partitions('passing', '2024-01-01', '2025-01-01', '1 year');
SELECT relpersistence FROM pg_class WHERE oid = 'passing_2024'::regclass;

-- The name of a detached partition is taken until it is dropped or renamed.
ALTER TABLE events DETACH PARTITION events_2024_02;
SELECT error_of($$SELECT snowflake_create_partitions('events', '2024-01-01', '2024-05-01', '1 month')$$);
DROP TABLE events_2024_02;
SELECT snowflake_create_partitions('events', '2024-01-01', '2024-05-01', '1 month');

SET client_min_messages = error;
DROP SCHEMA part, part31 CASCADE;
