INSERT INTO insta5.users (name, kind) VALUES ('robot', 'bot');
REFRESH MATERIALIZED VIEW insta5.kinds;
-- carried over if
SELECT count(*) = 2 FROM insta5.kinds;
-- told as
REFRESH MATERIALIZED VIEW insta5.kinds;
