-- Rows of a time range, by the primary key: no column created_at, no second index. In shard 1, a clone
-- of that of examples/shard.sql, with a user and photos of the last minute in it.

-- A month of older photos, one every 15 seconds, so that there is something to be left out.
-- snowflake_encode() makes the ID of a time in the past.
INSERT INTO insta1.photos (id, user_id, caption)
    SELECT snowflake_encode(posted_at, 1, 0), (SELECT min(id) FROM insta1.users), 'old'
    FROM generate_series(now() - interval '30 days', now() - interval '1 hour',
                         interval '15 seconds') AS posted_at;
ANALYZE insta1.photos;

-- The last minute's photos, the newest first.
SELECT id, caption, snowflake_timestamp(id) AS posted_at
FROM insta1.photos
WHERE snowflake_between(id, now() - interval '1 minute', now())
ORDER BY id DESC LIMIT 3;

-- How it finds them: the planner turns the condition into a range of the index.
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF)
SELECT count(*) FROM insta1.photos
WHERE snowflake_between(id, now() - interval '1 minute', now());
