-- Rows for a shard of shard.sql:  psql -v schema=insta5 -v n=20000 -f rows.sql
-- The longest value has 32 * :long characters: 9.6 million, or with -v long=10000 fewer, which are faster to move.
\if :{?long}
\else
\set long 300000
\endif
SET search_path = :"schema", public;
INSERT INTO users (name, kind, country, settings, avatar)
SELECT 'user' || g, (ARRAY['person', 'business', 'bot'])[1 + g % 3], (ARRAY['de', 'fr', 'jp', 'br', NULL])[1 + g % 5],
       jsonb_build_object('n', g), decode(repeat(md5(g::text), 8), 'hex')
FROM generate_series(1, :n / 20 + 100) AS g;
INSERT INTO photos (user_id, caption, seen_by, tags, place, width)
SELECT u.id, 'photo ' || g, (ARRAY['public', 'friends', 'private']::visibility[])[1 + g % 3], ARRAY['t' || g % 7, 'ü"''\'],
       ROW(g % 90, g % 180)::point_of_view, CASE WHEN g % 1000 = 0 THEN 'NaN'::numeric ELSE g END
FROM generate_series(1, :n) AS g JOIN (SELECT id, row_number() OVER () AS r FROM users) AS u ON u.r = 1 + g % (:n / 20 + 100);
INSERT INTO comments (photo_id, user_id, body) SELECT id, user_id, 'nice ' || caption FROM photos;
INSERT INTO comments (photo_id, user_id, body) SELECT id, user_id, repeat(md5(random()::text), :long) FROM photos LIMIT 1;
INSERT INTO follows SELECT a.id, b.id FROM (SELECT id FROM users LIMIT 50) AS a, (SELECT id FROM users LIMIT 50) AS b WHERE a.id <> b.id;
INSERT INTO events (kind, data) SELECT 'seen', jsonb_build_object('photo', id) FROM photos LIMIT :n / 10;
INSERT INTO bookings (room, while) SELECT g, tstzrange(now(), now() + interval '1 day') FROM generate_series(1, 100) AS g;
REFRESH MATERIALIZED VIEW top_users;
RESET search_path;
