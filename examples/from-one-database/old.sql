-- A database as many begin: the schema public, serial keys, user_id in most tables.
CREATE TABLE filters (name text PRIMARY KEY, strength integer NOT NULL);
CREATE TABLE users (
    id     bigserial PRIMARY KEY,
    name   text NOT NULL UNIQUE,
    member serial);
CREATE TABLE photos (
    id      bigserial PRIMARY KEY,
    user_id bigint NOT NULL REFERENCES users,
    filter  text REFERENCES filters,
    caption text NOT NULL);
CREATE INDEX ON photos (user_id, id);
CREATE TABLE likes (
    photo_id bigint NOT NULL REFERENCES photos,
    user_id  bigint NOT NULL REFERENCES users,
    PRIMARY KEY (photo_id, user_id));
CREATE TABLE comments (
    id       bigserial PRIMARY KEY,
    photo_id bigint NOT NULL REFERENCES photos,
    body     text NOT NULL);
