-- snowflake_settled_id(): its result, the sequence of a column, and what it refuses.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
SELECT snowflake_create_shard(5, 'insta5');
CREATE TABLE insta5.photos (id bigint PRIMARY KEY DEFAULT insta5.next_id(), caption text);

-- No ID was drawn; then the last one, by each of the signatures.
SELECT insta5.settled_id();
INSERT INTO insta5.photos (caption) SELECT 'x' FROM generate_series(1, 1000);
SELECT insta5.settled_id() = max(id) AS function, snowflake_settled_id(5, 'insta5.table_id_seq') = max(id) AS sequence,
       snowflake_settled_id('insta5.photos') = max(id) AS "table", snowflake_settled_id('insta5.photos', 'id') = max(id) AS "column"
FROM insta5.photos;
CREATE SEQUENCE insta5.lowest MINVALUE -9223372036854775808;
SELECT snowflake_settled_id(5, 'insta5.lowest') AS unused, snowflake_settled_id(5, 'insta5.lowest', -9223372036854775808) AS epoch;
-- An ID that is drawn and not used counts, also after a rollback.
BEGIN;
SELECT insta5.next_id() AS drawn \gset
ROLLBACK;
SELECT insta5.settled_id() = :drawn AS drawn;
-- After an advance and a setval(): below the next ID, not below the rows.
SELECT snowflake_advance('insta5.table_id_seq', :drawn + (1::bigint << 23));
SELECT insta5.settled_id() AS settled \gset
SELECT :settled > :drawn AS is_later, :settled < insta5.next_id() AS is_earlier;
SELECT snowflake_encode(now() + '1 minute', 5, 7) AS stored \gset
SELECT setval('insta5.table_id_seq', :stored) = :stored AS is_set;
SELECT insta5.settled_id() AS settled \gset
SELECT :settled >= :stored AS is_later, :settled < insta5.next_id() AS is_earlier;
-- Another epoch, and one that is not over yet.
SELECT snowflake_create_shard(6, 'insta6', 1700000000000);
SELECT insta6.next_id() AS drawn \gset
SELECT insta6.settled_id() = :drawn AS settled,
       snowflake_settled_id(6, 'insta6.table_id_seq', 1700000000000) = :drawn AS with_epoch,
       snowflake_settled_id(6, 'insta6.table_id_seq', 9223372036854775807) AS future,
       snowflake_settled_id(6, 'insta6.table_id_seq', -9223372036854775808) AS past;

-- The DEFAULT of a column: through a function, directly, in a partition, of the setting; not one call; none.
CREATE SEQUENCE insta5.other_seq;
CREATE TABLE insta5.direct (id bigint DEFAULT snowflake_next_id(5, 'insta5.other_seq'), "Key" bigint DEFAULT insta5.next_id());
CREATE TABLE insta5.parted (id bigint DEFAULT insta5.next_id()) PARTITION BY RANGE (id);
CREATE TABLE insta5.part PARTITION OF insta5.parted DEFAULT;
CREATE TABLE insta5.several (id bigint DEFAULT CASE WHEN random() < 0.5 THEN insta5.next_id()
                                               ELSE snowflake_next_id(5, 'insta5.other_seq') END,
                             twice bigint DEFAULT greatest(insta5.next_id(), insta5.next_id()),
                             computed bigint DEFAULT snowflake_next_id(random()::integer, 'insta5.other_seq'),
                             of_setting bigint DEFAULT snowflake_next_id(), word text DEFAULT 'x', serial serial);
INSERT INTO insta5.direct (id) SELECT snowflake_next_id(5, 'insta5.other_seq');
SELECT snowflake_settled_id('insta5.direct') = max(id) AS direct FROM insta5.direct;
SELECT snowflake_settled_id('insta5.direct', 'Key') = insta5.settled_id() AS "Key",
       snowflake_settled_id('insta5.part') = insta5.settled_id() AS part,
       snowflake_settled_id('insta5.several', 'twice') = insta5.settled_id() AS twice;
SELECT snowflake_settled_id('insta5.several');
SELECT snowflake_settled_id('insta5.several', 'computed');
SELECT snowflake_settled_id('insta5.several', 'of_setting');
SET snowflake.shard = 9;
SELECT snowflake_shard(snowflake_settled_id('insta5.several', 'of_setting')) IN (0, 9) AS of_setting;
RESET snowflake.shard;
SELECT snowflake_settled_id('insta5.several', 'word');
SELECT snowflake_settled_id('insta5.several', 'serial');
SELECT snowflake_settled_id('insta5.several', 'missing');
SELECT snowflake_settled_id(0::regclass);
SELECT snowflake_settled_id('pg_class', 'oid');

-- NULL, a shard that is none, an object that is no sequence.
SELECT snowflake_settled_id(NULL, 'insta5.table_id_seq') IS NULL AS "null", snowflake_settled_id(NULL::regclass) IS NULL AS null_table;
SELECT snowflake_settled_id(8192, 'insta5.table_id_seq');
SELECT snowflake_settled_id(5, 'insta5.photos');
SELECT snowflake_settled_id(5, 0::regclass);
SELECT snowflake_settled_id(5, 4294967295::oid::regclass);

-- A snapshot of the transaction is older than the wait.
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT insta5.settled_id();
ROLLBACK;
BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY;
SELECT insta5.settled_id();
ROLLBACK;
-- A read-only transaction may ask. It draws nothing.
BEGIN READ ONLY;
SELECT insta5.settled_id() > 0 AS read_only;
ROLLBACK;
-- It takes no lock that another consumer would wait for.
BEGIN;
SELECT insta5.settled_id() > 0 AS settled;
SELECT mode FROM pg_locks WHERE relation = 'insta5.table_id_seq'::regclass;
COMMIT;

-- SELECT is enough, or USAGE, and one of them is needed.
CREATE ROLE regress_settled;
GRANT USAGE ON SCHEMA insta5 TO regress_settled;
SET ROLE regress_settled;
SELECT insta5.settled_id();
SELECT snowflake_settled_id('insta5.photos');
RESET ROLE;
GRANT SELECT ON SEQUENCE insta5.table_id_seq TO regress_settled;
SET ROLE regress_settled;
SELECT insta5.settled_id() > 0 AS "SELECT";
RESET ROLE;
REVOKE SELECT ON SEQUENCE insta5.table_id_seq FROM regress_settled;
GRANT USAGE ON SEQUENCE insta5.table_id_seq TO regress_settled;
SET ROLE regress_settled;
SELECT insta5.settled_id() > 0 AS "USAGE";
RESET ROLE;

-- A sequence that a move or a split has closed, or that is a copy of Citus.
ALTER SEQUENCE insta5.other_seq MINVALUE 4 MAXVALUE 5 START 4 RESTART;
SELECT snowflake_settled_id(5, 'insta5.other_seq');
CREATE SEQUENCE insta5.ended_seq;
SELECT setval('insta5.ended_seq', 9223372036854775807);
SELECT snowflake_settled_id(5, 'insta5.ended_seq');
CREATE SEQUENCE insta5.copied_seq MINVALUE 281474976710657 MAXVALUE 562949953421313;
SELECT snowflake_settled_id(5, 'insta5.copied_seq');

-- A function of that name is kept, and a shard without one gets it.
CREATE SCHEMA insta7;
CREATE FUNCTION insta7.settled_id() RETURNS bigint LANGUAGE sql RETURN 7;
SELECT snowflake_create_shard(7, 'insta7');
SELECT insta7.settled_id();
DROP FUNCTION insta7.settled_id();
SELECT snowflake_create_shard(7, 'insta7');
SELECT insta7.settled_id();
-- It makes no IDs: no row of the registry names it.
SELECT * FROM snowflake_internal.call_of('pg_proc'::regclass, 'insta7.settled_id()'::regprocedure, 0);

-- SQLSTATEs.
\set VERBOSITY sqlstate
SELECT snowflake_settled_id(8192, 'insta5.table_id_seq');
SELECT snowflake_settled_id(5, 'insta5.photos');
SELECT snowflake_settled_id(5, 0::regclass);
SELECT snowflake_settled_id('insta5.several');
SELECT snowflake_settled_id('insta5.several', 'missing');
SELECT snowflake_settled_id(5, 'insta5.other_seq');
SET ROLE regress_settled;
SELECT snowflake_settled_id(5, 'insta5.ended_seq');
RESET ROLE;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT insta5.settled_id();
ROLLBACK;
\set VERBOSITY default

DROP SCHEMA insta5, insta6, insta7 CASCADE;
DROP ROLE regress_settled;
