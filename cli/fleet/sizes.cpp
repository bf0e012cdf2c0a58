#include "fleet/sizes.h"

std::string sizes_sql(const std::string& schemas)
{
    return R"(
        SELECT f.schema, sum(snowflake_internal.file_size(c.reltablespace, c.relfilenode))::bigint AS size
        FROM (WITH tables AS MATERIALIZED (
                  SELECT relnamespace AS schema, unnest(ARRAY[oid, reltoastrelid]) AS oid
                  FROM pg_class WHERE relkind IN ('r', 'm') AND relnamespace = ANY ()" +
           schemas + R"())
              SELECT schema, oid FROM tables
              UNION ALL
              SELECT schema, indexrelid FROM tables JOIN pg_index ON indrelid = oid) AS f
        JOIN pg_class AS c USING (oid)
        GROUP BY f.schema)";
}
