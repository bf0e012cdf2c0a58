#include "postgres/citus.h"

#include "base/output.h"

namespace
{

/* to_regclass() returns NULL for a table that does not exist; a cast to regclass would raise an
 * error. */
bool has_table(Connection& connection, const std::string& name)
{
    return connection
        .query("SELECT to_regclass('pg_catalog.' || quote_ident($1)) IS NOT NULL", {name})
        .flag(0, 0);
}

} // namespace

/* Without Citus, or before its version 12, there are no distributed schemas and no such catalogue.
 * DISTINCT: a schema has many tables, and their shards are on the same node. A node's secondaries
 * have rows of the same groupid in pg_dist_node; clients write to the primary. */
std::string citus_nodes_sql(Connection& connection)
{
    if (!has_table(connection, "pg_dist_schema"))
        return "SELECT 0::oid AS schema, '' AS node WHERE false";
    return R"(
        SELECT DISTINCT s.schemaid::oid AS schema, format('%s:%s', n.nodename, n.nodeport) AS node
        FROM pg_catalog.pg_dist_schema AS s
        JOIN pg_catalog.pg_dist_partition AS t USING (colocationid)
        JOIN pg_catalog.pg_dist_shard AS h USING (logicalrelid)
        JOIN pg_catalog.pg_dist_placement AS p USING (shardid)
        JOIN pg_catalog.pg_dist_node AS n ON n.groupid = p.groupid AND n.noderole = 'primary')";
}

void warn_of_citus(Connection& connection)
{
    /* A count of local rows or IDs would look complete, and leave out the rows on workers. */
    if (has_table(connection, "pg_dist_node"))
        warn(connection.server() +
             " is a node of Citus: its coordinator makes the IDs of distributed "
             "schemas; rows that Citus distributes are not looked at");
}
