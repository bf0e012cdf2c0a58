CREATE TABLE albums (
    id    bigint PRIMARY KEY DEFAULT next_id(),
    title text NOT NULL);
