-- A table that shards refer to, and one to become a global table. The schemas are mallory's, the tables are not.
CREATE SCHEMA shared AUTHORIZATION mallory;
CREATE TABLE shared.countries (id integer PRIMARY KEY, code char(2) NOT NULL);
INSERT INTO shared.countries VALUES (1, 'de'), (2, 'fr');
GRANT ALL ON shared.countries TO mallory;
CREATE SCHEMA shop AUTHORIZATION mallory;
CREATE TABLE shop.filters (id integer PRIMARY KEY, name text NOT NULL, strength integer CHECK (strength > 0));
