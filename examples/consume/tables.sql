CREATE TABLE insta5.photos (id bigint PRIMARY KEY DEFAULT insta5.next_id(), caption text);

-- The last ID of each consumer: 0 to begin with the oldest row, insta5.settled_id() to begin with the next one.
CREATE TABLE insta5.consumers (name text PRIMARY KEY, last_id bigint NOT NULL);
INSERT INTO insta5.consumers VALUES ('feed', 0);

-- The work of feed.py.
CREATE TABLE insta5.feed (n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, photo_id bigint NOT NULL, caption text);

-- Wakes the consumers that listen.
CREATE FUNCTION insta5.announce_photos() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NOTIFY insta5_photos;
    RETURN NULL;
END $$;
CREATE TRIGGER announce_photos AFTER INSERT ON insta5.photos FOR EACH STATEMENT EXECUTE FUNCTION insta5.announce_photos();
