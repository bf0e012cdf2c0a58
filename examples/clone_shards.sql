-- The shards from :first to :last, each a clone of the first one, each in a transaction of its own
-- so that none of them holds more locks than its own tables need.
--
--     psql -v first=4 -v last=1999 -f examples/clone_shards.sql

SET client_min_messages = notice;
CREATE PROCEDURE clone_shards(first integer, last integer) LANGUAGE plpgsql AS $$
DECLARE
    started timestamptz := clock_timestamp();
BEGIN
    FOR shard IN first..last LOOP
        PERFORM snowflake_clone_shard('insta0', shard, 'insta' || shard);
        COMMIT;
        IF shard % 250 = 0 OR shard = last THEN
            RAISE NOTICE '% shards after % s', shard + 1, round(extract(epoch FROM clock_timestamp() - started));
        END IF;
    END LOOP;
END $$;
CALL clone_shards(:first, :last);
DROP PROCEDURE clone_shards;
