-- The first logical shard of an application like Instagram: a schema with number 0, and its tables.
-- All of them draw their IDs from the shard's next_id(), so an ID is unique over all tables of the
-- shard, and so over all tables of all shards. The other shards are clones of it:
--
--     snowflake-shard clone dbname=app --template insta0 --shards 1-1999 --schema 'insta{}'

SELECT snowflake_create_shard(0, 'insta0');

CREATE TABLE insta0.users (
    id       bigint PRIMARY KEY DEFAULT insta0.next_id(),
    name     text NOT NULL
);
CREATE TABLE insta0.photos (
    id       bigint PRIMARY KEY DEFAULT insta0.next_id(),
    user_id  bigint NOT NULL REFERENCES insta0.users,
    caption  text
);
CREATE INDEX ON insta0.photos (user_id);
CREATE TABLE insta0.likes (
    id       bigint PRIMARY KEY DEFAULT insta0.next_id(),
    photo_id bigint NOT NULL REFERENCES insta0.photos,
    user_id  bigint NOT NULL
);
CREATE TABLE insta0.comments (
    id       bigint PRIMARY KEY DEFAULT insta0.next_id(),
    photo_id bigint NOT NULL REFERENCES insta0.photos,
    body     text NOT NULL
);
