-- IDs that Instagram's own shards made: of public posts, as public documentation and test suites
-- quote them, with the second at which the post was published where that is known. A video's row is
-- made when its upload begins, minutes before it is published.

CREATE TEMPORARY TABLE instagram_ids (id bigint, shortcode text, published_at timestamptz);
INSERT INTO instagram_ids VALUES
    (1922949326347663701, 'BqvsDleB3lV', '2018-11-29 01:04:04+00'),
    (1806097553666903266, 'BkQjCfsBIzi', '2018-06-20 19:51:32+00'), -- a video
    (2715604631366879010, 'CWvxAY7B0ci', NULL),
    (908540701891980503,  'ybyPRoQWzX',  NULL);

SELECT shortcode, id, published_at, created_at, shard, seq
FROM instagram_ids, snowflake_decode(id)
ORDER BY id;
