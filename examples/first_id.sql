-- The first ID. 7 is the number of a logical shard, 0 to 8191; the sequence can be any bigint
-- sequence that nothing else counts with.

CREATE EXTENSION snowflake;
CREATE SEQUENCE my_seq;

SELECT snowflake_next_id(7, 'my_seq');

-- What an ID says about itself: (id >> 23) is the time in milliseconds since 2011-08-24
-- 21:07:01.721 UTC, (id >> 10) & 8191 the shard, id & 1023 a counter.
SELECT id, created_at, shard, seq
FROM snowflake_next_id(7, 'my_seq') AS id, snowflake_decode(id);
