/* Servers that are nodes of Citus. It keeps the rows of a distributed schema on one node, and
 * clients reach them through the coordinator, which makes their IDs. */

#pragma once

#include <string>

#include "postgres/connection.h"

/* A SELECT of schema (an OID) and node ("host:port") for each schema that Citus distributes; on any
 * other server of no rows. */
std::string citus_nodes_sql(Connection& connection);

/* A line on the standard error if the server is a node of Citus: which rows are not looked at. */
void warn_of_citus(Connection& connection);
