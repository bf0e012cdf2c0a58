-- setval() back, RESTART and TRUNCATE ... RESTART IDENTITY, over and over: no ID comes twice.

CREATE SCHEMA restart;
SET search_path = restart, public;

-- Set by hand: the sequence starts anew, above every ID that is not ahead of the clock. (1023 and
-- max_lead = 0: each round would begin in the millisecond of the one before, if it did not pace.)
CREATE TABLE drawn (id bigint, n bigserial);
CREATE FUNCTION rounds(count integer, command text, OUT drawn bigint, OUT different bigint, OUT in_order boolean)
LANGUAGE plpgsql SET snowflake.max_lead = 0 AS $$
DECLARE
    ids bigint[] := '{}';
BEGIN
    FOR i IN 1..count LOOP
        ids := ids || public.snowflake_next_id(1, 'drawn_n_seq');
        EXECUTE command;
    END LOOP;
    SELECT count(*), count(DISTINCT id), bool_and(id > previous) FILTER (WHERE previous IS NOT NULL)
    INTO drawn, different, in_order
    FROM (SELECT id, lag(id) OVER (ORDER BY n) AS previous FROM unnest(ids) WITH ORDINALITY AS all_ids (id, n)) AS pairs;
END $$;
SELECT * FROM rounds(2000, 'ALTER SEQUENCE drawn_n_seq RESTART');
SELECT command, rounds.* FROM unnest(ARRAY[
    'ALTER SEQUENCE drawn_n_seq RESTART WITH 1023', 'TRUNCATE drawn RESTART IDENTITY',
    'SELECT setval(''drawn_n_seq'', 1)', 'SELECT setval(''drawn_n_seq'', 1, false)',
    'SELECT setval(''drawn_n_seq'', last_value - 1) FROM drawn_n_seq',
    'ALTER SEQUENCE drawn_n_seq RESTART; SELECT snowflake_advance(''drawn_n_seq'', 0)']) AS command,
    LATERAL rounds(200, command);
-- What is ahead of the clock can come again, and snowflake_advance() prevents that.
SELECT snowflake_advance('drawn_n_seq', snowflake_encode(clock_timestamp() + '5 s', 1, 0)) \g /dev/null
SELECT snowflake_next_id(1, 'drawn_n_seq') AS id \gset
ALTER SEQUENCE drawn_n_seq RESTART;
SELECT snowflake_advance('drawn_n_seq', :id);
SELECT snowflake_next_id(1, 'drawn_n_seq') > :id AS grows;

RESET search_path;
SET client_min_messages = warning;
DROP SCHEMA restart CASCADE;
