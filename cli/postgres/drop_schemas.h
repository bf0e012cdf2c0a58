/* DROP SCHEMA, and extensions that it would drop. */

#pragma once

#include <string>
#include <vector>

#include "postgres/obstacles.h"

/* Extensions that are installed in one of the schemas, or have objects there. They are of the whole
 * database, and neither move with a schema nor are dropped with it. schemas: an array of names as
 * SQL writes them. */
Obstacles find_extensions_in(Connection& connection, const std::string& schemas);

/* DROP SCHEMA IF EXISTS ... CASCADE, in a transaction of the caller. A Failure if it would drop an
 * extension. names: as SQL writes them. */
void drop_schemas(Connection& connection, const std::vector<std::string>& names);
