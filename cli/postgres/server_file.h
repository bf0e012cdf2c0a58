/* The file of @FILE and of SNOWFLAKE_SERVERS: a connection string a line. */

#pragma once

#include <map>
#include <string>

/* The connection strings by the numbers of their lines, at least one. A # begins a comment. No
 * string is parsed here. A UsageError if the file cannot be read, or names no server. */
std::map<int, std::string> read_server_file(const std::string& name);
