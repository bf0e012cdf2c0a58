/* With whose rights SQL works in the shards of a server, for query and run.
 *
 * Objects of a shard can hold code of its owner: a view, a trigger, the CHECK of a domain. So SQL
 * works with the rights of that owner, in a security-restricted operation of the library: this code
 * gains no right of the caller. It works with those of the caller in the shards that the caller
 * owns, in those of superusers, and where the caller may not act as the owner. */

#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/shards.h"
#include "postgres/values.h"

struct Rights {
    bool is_as_owner = false;     /* by snowflake_internal.run_as_owner() and the like */
    std::string owner;            /* of the schema, as SQL writes it */
    std::string problem;          /* why nothing may run in the shard; empty if it may */
    std::string extension_schema; /* as SQL writes it */
};

/* Of all schemas, by name. Only catalogs are read. */
std::map<std::string, Rights> read_rights(Connection& connection);

/* Statements, with the rights of the owner, in a transaction of the caller. Errors do not repeat
 * the text. */
void run_as_owner(Connection& connection, const Shard& shard, const std::string& sql);

/* The columns of a query; a Failure if it has none. parameters: none, or $1 and $2, bigint. */
using Parameters = std::vector<std::string>;
std::vector<Column> read_columns_as_owner(Connection& connection, const Shard& shard,
                                          const std::string& sql, const Parameters& parameters);
/* A SELECT of its rows, all values as text. columns: their number. */
std::string rows_as_owner_sql(Connection& connection, const Shard& shard, const std::string& sql,
                              const Parameters& parameters, std::size_t columns);

/* The text of an error of such SQL, or of other SQL: without the query, whose line is enough, and
 * with the role that lacks a right, and with the schema of the extension where its name lacks it.
 */
std::string explained(const ServerError& error, const Rights& rights);
