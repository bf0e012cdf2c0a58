CREATE TABLE insta5.events_2020 PARTITION OF insta5.events FOR VALUES FROM (0) TO (1000000);
INSERT INTO insta5.events VALUES (5, 'old');
-- carried over if
SELECT count(*) = 1 FROM insta5.events_2020;
