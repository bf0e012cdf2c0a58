-- The registry of shards is the catalogue itself; these views read it. The check has nothing to say.

SELECT count(*) AS shards FROM snowflake_shards;
SELECT count(*) AS columns, count(DISTINCT seq) AS sequences FROM snowflake_columns;
SELECT * FROM snowflake_columns WHERE shard = 1341;
SELECT * FROM snowflake_sequences WHERE shard = 1341;
SELECT * FROM snowflake_check();
