-- The first shard. The others are its clones.
SELECT snowflake_create_shard(0, 'insta0');
SET search_path = insta0, public;
CREATE TABLE photos (
    id       bigint PRIMARY KEY DEFAULT next_id(),
    user_id  bigint NOT NULL,
    filter   text NOT NULL DEFAULT 'plain' REFERENCES filters,
    caption  text NOT NULL
);
CREATE INDEX ON photos (user_id);
