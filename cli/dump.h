/* The definition of schemas, as pg_dump -s writes it. */

#pragma once

#include <map>
#include <string>
#include <vector>

#include "connection.h"

/* An object's statements, as they stand below one heading of pg_dump. */
struct Entry {
    std::string type; /* TABLE, FUNCTION, ACL ... */
    std::string name;
    std::string sql;
};

using Entries = std::vector<Entry>;

/* Settings that these statements rely on; pg_dump writes them at the head of its output. */
extern const char* const kDumpSettings;

/* The entries of each schema; a schema that does not exist is an error of pg_dump. */
std::map<std::string, Entries> dump_schemas(const Connection& connection,
                                            const std::vector<std::string>& schemas);

/* The entries of one schema in a section, pre-data or post-data. */
Entries dump_section(const Connection& connection, const std::string& schema,
                     const std::string& section);

/* All statements, in order. */
std::string sql_of(const Entries& entries);
