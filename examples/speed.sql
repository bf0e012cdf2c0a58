-- What an ID costs: a plain sequence, this extension, and the PL/pgSQL function that Instagram
-- published in 2011. Each makes 100,000 IDs in one statement, seven times by turns.

CREATE SCHEMA legacy;
CREATE SEQUENCE legacy.table_id_seq;
CREATE FUNCTION legacy.next_id(OUT result bigint) LANGUAGE plpgsql AS $$
DECLARE
    our_epoch  bigint := 1314220021721;
    seq_id     bigint;
    now_millis bigint;
    shard_id   int := 5;
BEGIN
    SELECT nextval('legacy.table_id_seq') % 1024 INTO seq_id;
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000) INTO now_millis;
    result := (now_millis - our_epoch) << 23;
    result := result | (shard_id << 10);
    result := result | (seq_id);
END $$;

CREATE SEQUENCE plain_seq;
CREATE SEQUENCE native_seq;

CREATE FUNCTION pg_temp.nanoseconds_per_row(expression text, n integer) RETURNS float8
LANGUAGE plpgsql AS $$
DECLARE
    start timestamptz := clock_timestamp();
BEGIN
    EXECUTE format('SELECT count(%s) FROM generate_series(1, %s) AS i', expression, n);
    RETURN extract(epoch FROM clock_timestamp() - start) * 1e9 / n;
END $$;

SET jit = off;
CREATE TEMPORARY TABLE measured AS
    SELECT what, expression, pg_temp.nanoseconds_per_row(expression, 100000) AS ns
    FROM generate_series(1, 7) AS round, LATERAL (VALUES
        (0, 'i'),
        (1, $$ nextval('plain_seq') $$),
        (2, $$ snowflake_next_id(5, 'native_seq') $$),
        (3, $$ legacy.next_id() $$)) AS competitor (what, expression)
    ORDER BY round, what;

-- The median of the seven, less the loop itself.
WITH median AS (
    SELECT what, expression, percentile_cont(0.5) WITHIN GROUP (ORDER BY ns) AS ns
    FROM measured GROUP BY what, expression
), net AS (
    SELECT what, expression, ns - (SELECT ns FROM median WHERE what = 0) AS ns
    FROM median WHERE what > 0
)
SELECT trim(expression) AS generator, round(ns) AS ns_per_id,
       round((ns / (SELECT ns FROM net WHERE what = 1))::numeric, 2) AS times_nextval
FROM net ORDER BY what;
