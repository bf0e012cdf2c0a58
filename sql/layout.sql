-- The layout, against the arithmetic of the published function and against real IDs.

SET timezone = 'UTC';

-- The article's own example: user 31341, 2000 logical shards, counter 5001.
SELECT created_at, shard, seq
FROM snowflake_decode((1387263000::bigint << (64 - 41)) | ((31341 % 2000)::bigint << (64 - 41 - 13)) | (5001 % 1024));
SELECT snowflake_encode('epoch'::timestamptz + (1314220021721 + 1387263000) * interval '1 millisecond', 31341 % 2000, 5001 % 1024)
     = (1387263000::bigint << (64 - 41)) | ((31341 % 2000)::bigint << (64 - 41 - 13)) | (5001 % 1024) AS same;
-- The default epoch in SQL is that of the library, and the published one.
SELECT snowflake_internal.default_epoch() = 1314220021721 AS published,
       snowflake_timestamp(0) = snowflake_timestamp(0, snowflake_internal.default_epoch()) AS same;

-- IDs that production shards made, of public posts, with the second at which the post was published:
-- a photo's ID is of that second, a video's of the minutes before (its row is made when its upload begins).
SELECT id, snowflake_timestamp(id) AS made, published, snowflake_shard(id), snowflake_seq(id),
       date_trunc('second', snowflake_timestamp(id)) = published AS same_second
FROM (VALUES (1922949326347663701, timestamptz '2018-11-29 01:04:04+00'),
             (1806097553666903266, '2018-06-20 19:51:32+00'),
             (2715604631366879010, NULL),
             (908540701891980503, NULL)) AS real_ids (id, published);

-- The published function itself, against ours, over the whole range of its fields.
CREATE FUNCTION published(now_millis bigint, shard_id int, seq_value bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    our_epoch bigint := 1314220021721;
    seq_id bigint;
    result bigint;
BEGIN
    SELECT seq_value % 1024 INTO seq_id;
    result := (now_millis - our_epoch) << 23;
    result := result | (shard_id << 10);
    result := result | (seq_id);
    RETURN result;
END;
$$;
SELECT count(*) AS compared,
       count(*) FILTER (WHERE id = snowflake_encode('epoch'::timestamptz + ms * interval '1 millisecond', shard, (seq % 1024)::int)) AS equal,
       count(*) FILTER (WHERE snowflake_decode(id)
           = ROW('epoch'::timestamptz + ms * interval '1 millisecond', shard, (seq % 1024)::int)) AS decoded
FROM (SELECT ms, shard, seq, published(ms, shard, seq) AS id
      FROM (SELECT 1314220021721 + (random() * (2::bigint ^ 40 - 1))::bigint AS ms,
                   (random() * 8191)::int AS shard, (random() * 100000)::bigint AS seq
            FROM generate_series(1, 20000)) AS inputs) AS ids;
DROP FUNCTION published;

-- The ends: the first ID, the last one, and the negative ones, which decode as 41 unsigned bits.
SELECT id, (snowflake_decode(id)).*
FROM (VALUES (0::bigint), (1), (9223372036854775807), ('-9223372036854775808'), (-1)) AS ends (id);

-- Other epochs.
SELECT snowflake_timestamp(0, 0), snowflake_timestamp(0, -1), snowflake_timestamp(1::bigint << 23, 1288834974657);
SELECT snowflake_encode(timestamptz '2026-01-01 00:00:00.001+00', 1, 1, 1767225600000) = (1 << 23) + (1 << 10) + 1 AS ok;
SELECT (snowflake_decode(snowflake_encode('2030-02-03 04:05:06.789+00', 8191, 1023, 1767225600000), 1767225600000)).*;

-- Microseconds are cut off, before 1970 and 2000 too.
SELECT snowflake_timestamp(snowflake_encode('2026-01-01 00:00:00.001999+00', 0, 0)),
       snowflake_timestamp(snowflake_encode('1969-12-31 23:59:59.998999+00', 0, 0, -1000), -1000);

-- NULL in, NULL out.
SELECT snowflake_timestamp(NULL) IS NULL, snowflake_shard(NULL) IS NULL, snowflake_seq(NULL) IS NULL,
       snowflake_encode(NULL, 1, 1) IS NULL, snowflake_encode(now(), NULL, 1) IS NULL,
       (snowflake_decode(NULL)).created_at IS NULL, snowflake_min_id(NULL) IS NULL, snowflake_max_id(NULL) IS NULL;
