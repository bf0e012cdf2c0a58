-- pgEdge snowflake: pgedge_nextval('pgedge_s')
-- For bench/run --rival. pgEdge's extension has the name of ours, so a server holds one of the two; but this function of its
-- library can be called beside ours. Build it, and put the library where this file says:
--
--   git clone https://github.com/pgEdge/snowflake pgedge && make -C pgedge USE_PGXS=1
--   install -D pgedge/snowflake.so /tmp/bench-pgedge/snowflake.so
CREATE FUNCTION pgedge_nextval(regclass) RETURNS bigint LANGUAGE c VOLATILE
    AS '/tmp/bench-pgedge/snowflake', 'snowflake_nextval';
CREATE SEQUENCE pgedge_s;
-- For the sessions to come, and for this one, which has our library already.
DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET snowflake.node = 1', current_database()); END $$;
LOAD '/tmp/bench-pgedge/snowflake';
SET snowflake.node = 1;
