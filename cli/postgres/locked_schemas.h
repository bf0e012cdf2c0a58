/* Schemas that the command has made: their owner can exchange the names of two schemas between two
 * transactions of the command. */

#pragma once

#include <string>

#include "postgres/connection.h"

/* At the beginning of a transaction that finds them by name. Returns false if a name leads to
 * another schema than in the transaction that has noted the OIDs. In releases in which ALTER SCHEMA
 * ... RENAME takes a lock, such as 15.20, the names stay until the end of the transaction. names:
 * an array of names as SQL writes them; schemas: an array of OIDs, in the same order. */
bool lock_schemas(Connection& connection, const std::string& names, const std::string& schemas);
