-- Are the IDs of all tables of all shards different? For the shard of examples/shard.sql and its clones 1 to 3.

CREATE VIEW every_id (schema, id) AS
          SELECT 'insta0', id FROM insta0.users
UNION ALL SELECT 'insta0', id FROM insta0.photos
UNION ALL SELECT 'insta0', id FROM insta0.likes
UNION ALL SELECT 'insta1', id FROM insta1.users
UNION ALL SELECT 'insta1', id FROM insta1.photos
UNION ALL SELECT 'insta1', id FROM insta1.likes
UNION ALL SELECT 'insta2', id FROM insta2.users
UNION ALL SELECT 'insta2', id FROM insta2.photos
UNION ALL SELECT 'insta2', id FROM insta2.likes
UNION ALL SELECT 'insta3', id FROM insta3.users
UNION ALL SELECT 'insta3', id FROM insta3.photos
UNION ALL SELECT 'insta3', id FROM insta3.likes;

SELECT coalesce(schema, 'all four') AS schema_name,
       count(*) AS ids, count(DISTINCT id) AS distinct_ids,
       count(*) FILTER (WHERE schema <> 'insta' || snowflake_shard(id)) AS wrong_shard
FROM every_id GROUP BY ROLLUP (schema) ORDER BY schema;
