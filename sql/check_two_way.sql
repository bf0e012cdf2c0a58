-- What snowflake_check() says of a table that holds IDs of other shards, too. It is no part of check.sql, because a thousand rows take
-- long where script/sanitize empties all caches.
SET client_min_messages = warning;
CREATE SCHEMA two_way;
-- IDs of other shards, as replication in both directions brings them, made by a clock that is ahead: this sequence cannot make them
-- again. One of its own shard is found below them, in the last 1,000 entries of the index. A small number is of no shard.
CREATE SEQUENCE two_way.mirrored_id_seq;
CREATE TABLE two_way.mirrored (id bigint PRIMARY KEY DEFAULT snowflake_next_id(5, 'two_way.mirrored_id_seq'));
CREATE VIEW two_way.findings AS
    SELECT severity, object, regexp_replace(problem, '\d{16,}', '#') AS problem, regexp_replace(hint, '\d{16,}', '#') AS hint
    FROM snowflake_check() WHERE object ~ 'mirrored';
INSERT INTO two_way.mirrored VALUES (3);
TABLE two_way.findings;
INSERT INTO two_way.mirrored VALUES (DEFAULT);
INSERT INTO two_way.mirrored SELECT snowflake_encode(now() + n * interval '1 h', 4 + n % 2 * 2, 0) FROM generate_series(1, 990) AS n;
TABLE two_way.findings;
INSERT INTO two_way.mirrored SELECT snowflake_encode(now() + interval '30 min', 5, n) FROM generate_series(1, 9) AS n;
DELETE FROM two_way.mirrored WHERE snowflake_shard(id) = 5 AND snowflake_seq(id) > 3;
SELECT severity, regexp_replace(problem, '\d+ ms', '# ms') AS problem, hint FROM two_way.findings;
SELECT snowflake_seq(substring(problem, '\d{16,}')::bigint) AS of_last_row FROM snowflake_check() WHERE object = 'two_way.mirrored.id';
SELECT hint AS advance FROM snowflake_check() WHERE object = 'two_way.mirrored.id' \gset
:advance
SELECT severity, object FROM two_way.findings;
ALTER SEQUENCE two_way.mirrored_id_seq RESTART;
INSERT INTO two_way.mirrored SELECT snowflake_encode(now() + n * interval '1 h', 4 + n % 2 * 2, 0) FROM generate_series(1, 20) AS n;
SELECT count(*) FROM two_way.findings;
DROP TABLE two_way.mirrored;
-- By the setting: the IDs of the session's shard, and of those of the database and its roles, count.
ALTER SEQUENCE snowflake_id_seq RESTART;
CREATE TABLE two_way.mirrored (id bigint PRIMARY KEY DEFAULT snowflake_next_id());
CREATE ROLE snowflake_regress_app;
ALTER ROLE snowflake_regress_app SET snowflake.shard = 8;
INSERT INTO two_way.mirrored SELECT snowflake_encode(now() + interval '30 min', n, 0) FROM generate_series(7, 9) AS n;
SELECT snowflake_shard(substring(problem, '\d{16,}')::bigint) FROM snowflake_check() WHERE object = 'two_way.mirrored.id';
SET snowflake.shard = 9;
SELECT snowflake_shard(substring(problem, '\d{16,}')::bigint) FROM snowflake_check() WHERE object = 'two_way.mirrored.id' ORDER BY 1;
RESET snowflake.shard;
DROP TABLE two_way.mirrored;
DROP ROLE snowflake_regress_app;
DROP SCHEMA two_way CASCADE;
