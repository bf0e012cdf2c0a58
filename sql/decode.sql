-- Decoding where expressions are stored: indexes, generated columns, checks.

SET timezone = 'UTC';
CREATE TABLE decoded (
    id bigint PRIMARY KEY CHECK (snowflake_shard(id) = 5),
    created_at timestamptz GENERATED ALWAYS AS (snowflake_timestamp(id)) STORED,
    seq int GENERATED ALWAYS AS (snowflake_seq(id)) STORED
);
INSERT INTO decoded (id)
SELECT snowflake_encode(timestamptz '2024-01-01 00:00:00+00' + n * interval '1 minute', 5, n % 1024)
FROM generate_series(0, 9999) AS n;
SELECT count(*), min(created_at), max(created_at), count(*) FILTER (WHERE seq = 7) FROM decoded;
INSERT INTO decoded (id) VALUES (snowflake_encode('2024-01-01 00:00:00.001+00', 6, 0));

CREATE INDEX decoded_created_at ON decoded (snowflake_timestamp(id));
ANALYZE decoded;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT id FROM decoded WHERE snowflake_timestamp(id) = '2024-01-02 00:00:00+00';
SELECT (snowflake_decode(id)).* FROM decoded WHERE snowflake_timestamp(id) = '2024-01-02 00:00:00+00';
RESET enable_seqscan;
RESET enable_bitmapscan;

-- Parallel workers decode.
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
EXPLAIN (COSTS OFF) SELECT count(*) FROM decoded WHERE snowflake_seq(id) = 7;
SELECT count(*) FROM decoded WHERE snowflake_seq(id) = 7;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;
DROP TABLE decoded;
