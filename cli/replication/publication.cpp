#include "replication/publication.h"

std::vector<std::string> tables_of(Connection& connection, const Shard& shard,
                                   const std::string& kinds)
{
    return texts_of(connection.query(R"(
        SELECT oid::regclass FROM pg_class
        WHERE relnamespace = $1::regnamespace AND strpos($2, relkind::text) > 0 ORDER BY oid)",
                                     {shard.quoted, kinds}));
}
