-- A user signs up in shard 2, a clone of that of examples/shard.sql, and posts a photo: INSERT returns the
-- ID, as with a serial column.

INSERT INTO insta2.users (name) VALUES ('mia') RETURNING id;

INSERT INTO insta2.photos (user_id, caption)
    SELECT id, 'sunrise' FROM insta2.users WHERE name = 'mia'
    RETURNING id, user_id;

-- An ID is all it takes to find the schema of its row.
SELECT id, 'insta' || snowflake_shard(id) AS schema, snowflake_timestamp(id) AS posted_at
FROM insta2.photos;
