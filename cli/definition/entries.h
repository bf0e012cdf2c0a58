/* The objects of a shard, as text to be compared with another's. Never run this text: an
 * entry can be a part of a function's body that looks like an object. */

#pragma once

#include <map>
#include <string>
#include <vector>

#include "postgres/connection.h"

/* An object, or a part of one that pg_dump writes by itself. The name is that of pg_dump's heading,
 * with the arguments of a function. For privileges it is the statement. Each sql ends with a
 * newline. */
struct Entry {
    std::string type; /* TABLE, FUNCTION, ACL ... */
    std::string name;
    std::string sql;
};

using Entries = std::vector<Entry>;

/* The entries of each schema, with the privileges that its objects have in effect, and without the
 * triggers of a move or a split. lock_timeout: of pg_dump, which sets the session's to 0. */
std::map<std::string, Entries> read_entries(Connection& connection,
                                            const std::vector<std::string>& schemas,
                                            const std::string& lock_timeout);

/* The same of a dump of these schemas. The privileges are read from the server, not from the dump:
 * the connection is to the database that was dumped. */
std::map<std::string, Entries> split_dump(Connection& connection,
                                          const std::vector<std::string>& schemas,
                                          const std::string& dump);
