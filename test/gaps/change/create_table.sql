CREATE TABLE insta5.fresh (id bigint PRIMARY KEY DEFAULT insta5.next_id(), v text);
INSERT INTO insta5.fresh (v) VALUES ('a');
-- carried over if
SELECT count(*) = 1 FROM insta5.fresh;
