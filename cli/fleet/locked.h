/* Shards with relations that nobody can read just now: another session has locked them in ACCESS
 * EXCLUSIVE mode, or waits for such a lock. Every owner can do that, as long as they like. */

#pragma once

#include <map>
#include <string>
#include <vector>

#include "postgres/connection.h"

/* The locks by the OID of the schema: "locked by process 4711 (role app): TRUNCATE photos". */
using Locked = std::map<std::string, std::string>;
Locked find_locked(Connection& connection);
