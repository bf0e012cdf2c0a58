#include "postgres/decoding.h"

Obstacles find_low_wal_level(Connection& publisher)
{
    const bool raises_level = publisher.version() >= 190000;
    Obstacles found;
    found.read(publisher, R"(
        SELECT 'wal_level = ' || level, format('ALTER SYSTEM SET wal_level = %s; and restart the server', $1::text)
        FROM current_setting('wal_level') AS level WHERE level <> 'logical' AND level <> $1)",
               {raises_level ? "replica" : "logical"});
    return found;
}
