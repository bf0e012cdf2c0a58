-- The first shard of a server: psql -v shard=8 -v schema=insta8. The others are its clones.
SELECT snowflake_create_shard(:shard, :'schema');
SET search_path = :"schema", public;
CREATE TABLE photos (
    id       bigint PRIMARY KEY DEFAULT next_id(),
    user_id  bigint NOT NULL,
    caption  text NOT NULL
);
CREATE INDEX ON photos (user_id);
