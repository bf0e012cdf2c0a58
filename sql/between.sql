-- snowflake_between(id, from_ts, to_ts): half-open, strict, and an index condition on id.

SET timezone = 'UTC';
SELECT snowflake_between(snowflake_encode('2026-01-01 00:00:00+00', 3, 9), '2026-01-01 00:00:00+00', '2026-01-01 00:00:00.001+00') AS from_is_in,
       snowflake_between(snowflake_encode('2026-01-01 00:00:00+00', 3, 9), '2025-01-01 00:00:00+00', '2026-01-01 00:00:00+00') AS to_is_out,
       snowflake_between(snowflake_encode('2026-01-01 00:00:00+00', 3, 9), '-infinity', 'infinity') AS always,
       snowflake_between(snowflake_encode('2026-01-01 00:00:00+00', 3, 9), '2026-01-02', '2026-01-01') AS empty_range;
SELECT snowflake_between(NULL, now(), now()), snowflake_between(0, NULL, 'infinity'), snowflake_between(0, now(), NULL),
       snowflake_between(9223372036854775807, NULL, '-infinity') IS NULL AS null_bound_is_null;

CREATE TABLE made (id bigint, other int);
INSERT INTO made SELECT snowflake_encode(timestamptz '2024-01-01 00:00:00+00' + n * interval '1 minute', n % 8192, n % 1024), n
FROM generate_series(0, 19999) AS n;
CREATE INDEX made_id ON made (id);
CREATE INDEX made_other ON made (other);
ANALYZE made;

EXPLAIN (COSTS OFF) SELECT count(*) FROM made WHERE snowflake_between(id, '2024-01-02', '2024-01-02 00:10');
SELECT count(*), min(snowflake_timestamp(id)), max(snowflake_timestamp(id)) FROM made
WHERE snowflake_between(id, '2024-01-02', '2024-01-02 00:10');

-- Bounds that are known only when the query runs: functions of the time, parameters.
EXPLAIN (COSTS OFF) SELECT id FROM made WHERE snowflake_between(id, now() - interval '1 minute', now());
PREPARE between_parameters(timestamptz, timestamptz) AS SELECT id FROM made WHERE snowflake_between(id, $1, $2);
SET plan_cache_mode = force_generic_plan;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) EXECUTE between_parameters('2024-01-02', '2024-01-03');
RESET enable_seqscan;
RESET enable_bitmapscan;
RESET plan_cache_mode;
DEALLOCATE between_parameters;

-- Rows are estimated from the column's statistics: within a third of the truth.
CREATE FUNCTION estimated_rows(query text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE plan json;
BEGIN
    EXECUTE 'EXPLAIN (FORMAT json) ' || query INTO plan;
    RETURN plan->0->'Plan'->>'Plan Rows';
END $$;
SELECT estimated_rows($$SELECT * FROM made WHERE snowflake_between(id, '2024-01-02', '2024-01-09')$$)
    BETWEEN 10080 * 2 / 3 AND 10080 * 4 / 3 AS estimated;
DROP FUNCTION estimated_rows;

-- A bound that comes from the table itself is no index condition, and still right.
EXPLAIN (COSTS OFF) SELECT count(*) FROM made WHERE snowflake_between(id, snowflake_timestamp(other), 'infinity');
SELECT count(*) FROM made WHERE snowflake_between(id, snowflake_timestamp(other), 'infinity');

-- One that comes from another table is the inner side of a nested loop.
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_material = off;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT count(*) FROM (VALUES (timestamptz '2024-01-02'), ('2024-01-03')) AS days (day)
JOIN made ON snowflake_between(id, day, day + interval '1 hour');
SELECT count(*) FROM (VALUES (timestamptz '2024-01-02'), ('2024-01-03')) AS days (day)
JOIN made ON snowflake_between(id, day, day + interval '1 hour');
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_material;
RESET enable_seqscan;
RESET enable_bitmapscan;

-- The answer is the same with and without the index.
SELECT count(*) AS wrong FROM made
WHERE snowflake_between(id, '2024-01-03 04:05:06.789+00', '2024-01-05')
   <> (snowflake_timestamp(id) >= '2024-01-03 04:05:06.789+00' AND snowflake_timestamp(id) < '2024-01-05');

-- It is leakproof, so the index serves it behind a security barrier and a policy, too.
CREATE VIEW barrier WITH (security_barrier) AS SELECT * FROM made WHERE other < 15000;
EXPLAIN (COSTS OFF) SELECT count(*) FROM barrier WHERE snowflake_between(id, '2024-01-02', '2024-01-02 00:10');
DROP VIEW barrier;
CREATE ROLE between_reader;
GRANT SELECT ON made TO between_reader;
CREATE POLICY part ON made USING (other < 15000);
ALTER TABLE made ENABLE ROW LEVEL SECURITY;
SET ROLE between_reader;
EXPLAIN (COSTS OFF) SELECT count(*) FROM made WHERE snowflake_between(id, '2024-01-02', '2024-01-02 00:10');
RESET ROLE;
ALTER TABLE made DISABLE ROW LEVEL SECURITY;
DROP POLICY part ON made;
REVOKE ALL ON made FROM between_reader;
DROP ROLE between_reader;

-- BRIN has its own operator families.
DROP INDEX made_id;
CREATE INDEX made_brin ON made USING brin (id) WITH (pages_per_range = 1);
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT count(*) FROM made WHERE snowflake_between(id, '2024-01-02', '2024-01-02 00:10');
SELECT count(*) FROM made WHERE snowflake_between(id, '2024-01-02', '2024-01-02 00:10');
RESET enable_seqscan;
DROP TABLE made;
