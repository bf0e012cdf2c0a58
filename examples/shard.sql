-- One logical shard of an application like Instagram: a schema, the sequence that its IDs are drawn
-- from, and its tables. For the shard with number 5, schema insta5:
--
--     psql -v shard=5 -f examples/shard.sql
--
-- One sequence for all tables of the shard makes an ID unique over all of them, and so over all
-- tables of all shards.

\set schema insta :shard
\set sequence :schema .table_id_seq

CREATE SCHEMA :schema;
CREATE SEQUENCE :sequence;

CREATE TABLE :schema.users (
    id       bigint PRIMARY KEY DEFAULT snowflake_next_id(:shard, :'sequence'),
    name     text NOT NULL
);
CREATE TABLE :schema.photos (
    id       bigint PRIMARY KEY DEFAULT snowflake_next_id(:shard, :'sequence'),
    user_id  bigint NOT NULL REFERENCES :schema.users,
    caption  text
);
CREATE TABLE :schema.likes (
    id       bigint PRIMARY KEY DEFAULT snowflake_next_id(:shard, :'sequence'),
    photo_id bigint NOT NULL REFERENCES :schema.photos,
    user_id  bigint NOT NULL
);
