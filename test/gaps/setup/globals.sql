-- A table that shards refer to, and two to become global tables. The schemas are mallory's, and one of the tables.
CREATE SCHEMA shared AUTHORIZATION mallory;
CREATE TABLE shared.countries (id integer PRIMARY KEY, code char(2) NOT NULL);
INSERT INTO shared.countries VALUES (1, 'de'), (2, 'fr');
GRANT ALL ON shared.countries TO mallory;
CREATE SCHEMA shop AUTHORIZATION mallory;
CREATE TABLE shop.filters (id integer PRIMARY KEY, name text NOT NULL, strength integer CHECK (strength > 0));
CREATE TABLE shop.colors (id integer PRIMARY KEY, name text NOT NULL);
ALTER TABLE shop.colors OWNER TO mallory;
