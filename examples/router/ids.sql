-- The newest photo of shard 5. Its ID holds the time in milliseconds, the shard, and a counter that
-- keeps IDs of one millisecond apart.
SELECT id, created_at, shard, seq
FROM insta5.photos, snowflake_decode(id)
ORDER BY id DESC LIMIT 1;

-- A month of older photos, one every 15 seconds. snowflake_encode() makes the ID of a time in the past.
INSERT INTO insta5.photos (id, user_id, caption)
    SELECT snowflake_encode(posted_at, 5, 0), 5, 'old'
    FROM generate_series(now() - interval '30 days', now() - interval '1 hour',
                         interval '15 seconds') AS posted_at;
ANALYZE insta5.photos;

-- The photos of the last minute: the primary key is an index on time, without a column created_at.
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF)
SELECT count(*) FROM insta5.photos
WHERE snowflake_between(id, now() - interval '1 minute', now());
