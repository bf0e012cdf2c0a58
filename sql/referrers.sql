-- Columns that refer to a key by their names alone: as Rails, Django, Hibernate and people write them.
\set SHOW_CONTEXT never

CREATE SCHEMA ref;
SELECT snowflake_create_shard(27, 'ref');
SET search_path = ref, public;
CREATE TABLE users (id bigserial PRIMARY KEY, parent_id integer, age integer);
CREATE TABLE photos (
    id serial PRIMARY KEY, user_id integer NOT NULL DEFAULT 0, "ownerUserId" smallint, users_id integer, "taggedUserIds" integer[] DEFAULT '{}',
    user_type text, wide_user_id bigint, user_ident integer, superuser_id integer, user_id_of_day integer[]);
CREATE TABLE comments (commentable_type varchar, commentable_id integer, parent_id integer, "targetType" text, "targetId" integer);
CREATE TABLE tags (user_id integer GENERATED ALWAYS AS IDENTITY, user_ids integer REFERENCES photos, other_user_id serial);
CREATE TABLE parts (user_id integer, k integer) PARTITION BY LIST (k);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1);
CREATE VIEW of_photos AS SELECT user_id FROM photos;
SELECT snowflake_attach('users');

-- The names of tables and keys.
CREATE TABLE people (id bigint PRIMARY KEY);
CREATE TABLE categories (id bigint PRIMARY KEY);
CREATE TABLE blog_post (id bigint PRIMARY KEY);
CREATE TABLE user_types (id bigint PRIMARY KEY);
CREATE TABLE types (id bigint PRIMARY KEY);
CREATE TABLE key_dictionary (key_id bigint PRIMARY KEY);
CREATE TABLE "Album" ("AlbumId" bigint PRIMARY KEY);
CREATE TABLE named (
    person_id integer, category_id integer, post_id integer, type_id integer, user_type_id integer, key integer, key_id integer, "AlbumId" integer);
CREATE TABLE keys_of_its_own (key_id integer PRIMARY KEY, object_id integer, content_type_id integer);
SELECT key_tbl, tbl, column_name, new_type, type_column
FROM snowflake_internal.referrers(
    ARRAY['people', 'categories', 'blog_post', 'user_types', 'types', 'key_dictionary', '"Album"']::regclass[]::oid[], '{1,1,1,1,1,1,1}')
WHERE type_column IS NULL OR key_tbl = 'people'::regclass
ORDER BY key_tbl::text COLLATE "C", tbl::text COLLATE "C", column_name COLLATE "C";

-- snowflake_check() names those of the keys that have IDs.
SELECT * FROM snowflake_check() WHERE object !~ '^public';

-- Obstacles of such a column are listed before anything is changed.
SELECT snowflake_attach('users', referrers => 'widen');
DROP VIEW of_photos;
SET client_min_messages = warning; -- progress has times in it
INSERT INTO photos (user_id, "taggedUserIds") VALUES (7, '{1,2}');
SELECT snowflake_attach('users', referrers => 'widen');
SELECT attrelid::regclass, attname, format_type(atttypid, -1) FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
WHERE relnamespace = 'ref'::regnamespace AND relname IN ('users', 'photos', 'comments', 'tags', 'parts', 'parts_1') AND attnum > 0
ORDER BY attrelid::regclass::text COLLATE "C", attnum;
SELECT user_id, "taggedUserIds" FROM photos;
INSERT INTO photos (user_id, "taggedUserIds") SELECT id, ARRAY[id] FROM (SELECT next_id() AS id) AS new RETURNING user_id > 1::bigint << 50 AS is_id;
RESET client_min_messages;
SELECT snowflake_attach('users', referrers => 'widen');
SELECT snowflake_attach('users', referrers => 'all');
-- A column and what refers to it are written once.
CREATE TABLE orders (id serial PRIMARY KEY, order_id integer, user_id integer);
CREATE TABLE items (order_id integer REFERENCES orders, last_order_id integer);
SET client_min_messages = warning;
SELECT snowflake_attach('orders', referrers => 'widen');
SELECT attrelid::regclass, attname, format_type(atttypid, -1) FROM pg_attribute
WHERE attrelid IN ('orders'::regclass, 'items'::regclass) AND attnum > 0 ORDER BY attrelid::regclass::text COLLATE "C", attnum;
RESET client_min_messages;

-- Tables of other roles are named, and left alone.
CREATE ROLE snowflake_regress_author;
CREATE ROLE snowflake_regress_other;
GRANT USAGE, CREATE ON SCHEMA ref TO snowflake_regress_author;
CREATE TABLE authors (id bigint PRIMARY KEY);
CREATE TABLE books (author_id integer);
CREATE TABLE covers (author_id integer);
ALTER TABLE authors OWNER TO snowflake_regress_author;
ALTER TABLE books OWNER TO snowflake_regress_author;
ALTER TABLE covers OWNER TO snowflake_regress_other;
SET ROLE snowflake_regress_author;
SELECT snowflake_attach('authors');
ALTER TABLE authors ALTER id DROP DEFAULT;
SET client_min_messages = warning;
SELECT snowflake_attach('authors', referrers => 'widen');
RESET client_min_messages;
ALTER TABLE authors ALTER id DROP DEFAULT;
SELECT snowflake_attach('authors');
-- Also by a superuser: ALTER TABLE runs code of the table's owner.
RESET ROLE;
SELECT snowflake_attach('authors', referrers => 'widen');
SELECT attrelid::regclass, format_type(atttypid, -1) FROM pg_attribute WHERE attrelid IN ('books'::regclass, 'covers'::regclass) AND attnum = 1;

SET client_min_messages = error;
DROP SCHEMA ref CASCADE;
DROP ROLE snowflake_regress_author, snowflake_regress_other;
