-- The first shard of the service, which the others are clones of: snowflake-shard clone.
SELECT snowflake_create_shard(0, 'insta0');
SET search_path = insta0, public;

-- A user's row, photos and timeline are in one shard, which the user's ID contains.
CREATE TABLE users (
    id   bigint PRIMARY KEY DEFAULT insta0.next_id(),
    name text NOT NULL);

-- Of all users whose name leads to this shard. So a name is unique in all shards. A user who was renamed has the row of
-- his name in one shard, and his own row in another.
CREATE TABLE names (
    name    text PRIMARY KEY CHECK (name ~ '^[a-z0-9_.]{1,30}$'),
    user_id bigint NOT NULL);

CREATE TABLE photos (
    id      bigint PRIMARY KEY DEFAULT insta0.next_id(),
    user_id bigint NOT NULL REFERENCES users,
    caption text NOT NULL);
CREATE INDEX ON photos (user_id, id);

-- With the photo. The user can be of another shard, so there is no foreign key.
CREATE TABLE likes (
    photo_id bigint NOT NULL REFERENCES photos,
    user_id  bigint NOT NULL,
    PRIMARY KEY (photo_id, user_id));

-- The same with the user, written later: each row of the outbox is a row of liked in the shard of its user.
CREATE TABLE liked (
    user_id  bigint NOT NULL,
    photo_id bigint NOT NULL,
    PRIMARY KEY (user_id, photo_id));
CREATE TABLE outbox (
    id       bigint PRIMARY KEY DEFAULT insta0.next_id(),
    user_id  bigint NOT NULL,
    photo_id bigint NOT NULL);
