-- Shards 5 and 8 of mallory, and shard 6 of another role.
SET client_min_messages = error;
INSERT INTO shop.filters VALUES (1, 'plain', 1), (2, 'sutro', 9);
SELECT snowflake_create_shard(5, 'insta5'), snowflake_create_shard(6, 'insta6'), snowflake_create_shard(8, 'insta8');
ALTER SCHEMA insta5 OWNER TO mallory;
ALTER SCHEMA insta6 OWNER TO other;
ALTER SCHEMA insta8 OWNER TO mallory;
ALTER SEQUENCE insta5.table_id_seq OWNER TO mallory;
ALTER SEQUENCE insta8.table_id_seq OWNER TO mallory;
ALTER SEQUENCE insta6.table_id_seq OWNER TO other;
ALTER FUNCTION insta5.next_id() OWNER TO mallory;
ALTER FUNCTION insta8.next_id() OWNER TO mallory;
ALTER FUNCTION insta6.next_id() OWNER TO other;
ALTER FUNCTION insta5.settled_id() OWNER TO mallory;
ALTER FUNCTION insta8.settled_id() OWNER TO mallory;
ALTER FUNCTION insta6.settled_id() OWNER TO other;
CREATE TABLE insta6.users (id bigint PRIMARY KEY DEFAULT insta6.next_id(), name text);
ALTER TABLE insta6.users OWNER TO other;
SET ROLE mallory;
CREATE TABLE insta8.users (id bigint PRIMARY KEY DEFAULT insta8.next_id(), name text);
INSERT INTO insta8.users (name) VALUES ('dan');
CREATE TABLE insta5.users (id bigint PRIMARY KEY DEFAULT insta5.next_id(), name text NOT NULL,
    kind varchar(10) NOT NULL DEFAULT 'person' CHECK (kind IN ('person', 'bot')), country integer REFERENCES shared.countries,
    post_count integer NOT NULL DEFAULT 0);
CREATE TABLE insta5.posts (id bigint PRIMARY KEY DEFAULT insta5.next_id(),
    user_id bigint NOT NULL REFERENCES insta5.users ON DELETE CASCADE, body text);
CREATE INDEX ON insta5.posts (user_id);
CREATE TYPE insta5.mood AS ENUM ('glad', 'sad');
CREATE TABLE insta5.events (id bigint NOT NULL DEFAULT insta5.next_id(), v text, m insta5.mood, PRIMARY KEY (id)) PARTITION BY RANGE (id);
CREATE TABLE insta5.events_rest PARTITION OF insta5.events DEFAULT;
CREATE TABLE insta5."Old Log" (n serial PRIMARY KEY, v text);
CREATE MATERIALIZED VIEW insta5.kinds AS SELECT kind, count(*) FROM insta5.users GROUP BY kind;
CREATE FUNCTION insta5.count_posts() RETURNS trigger LANGUAGE plpgsql SET search_path = insta5 AS $$
BEGIN
    UPDATE users SET post_count = post_count + 1 WHERE id = NEW.user_id;
    RETURN NULL;
END $$;
CREATE TRIGGER count_posts AFTER INSERT ON insta5.posts FOR EACH ROW EXECUTE FUNCTION insta5.count_posts();
-- Its body draws, so a move closes it.
CREATE FUNCTION insta5.other_id() RETURNS bigint LANGUAGE sql SECURITY DEFINER
    BEGIN ATOMIC SELECT mallory.note('function other_id'); SELECT snowflake_next_id(5, 'insta5.table_id_seq'); END;
ALTER TABLE insta5.posts ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_web ON insta5.posts TO web USING (true);
GRANT USAGE ON SCHEMA insta5 TO web;
GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA insta5 TO web;
INSERT INTO insta5.users (name, country) VALUES ('ann', 1), ('bob', 2);
INSERT INTO insta5.posts (user_id, body) SELECT id, 'first' FROM insta5.users;
INSERT INTO insta5.events (v, m) VALUES ('seen', 'glad');
INSERT INTO insta5."Old Log" (v) VALUES ('made');
