/* SQL of query and run in a shard.
 *
 * Objects of a shard can hold code of its owner: a view, a trigger, the CHECK of a domain. So a
 * function of the library runs the SQL. It takes the OID of the schema, which stays the same
 * when the owner changes the name, and decides there with whose rights: see src/sql/owner.h.
 */

#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/shards.h"
#include "postgres/values.h"

/* Statements, in a transaction of the caller. Errors do not repeat the text. */
void run_in_shard(Connection& connection, const Shard& shard, const std::string& sql);

/* The search_path for one statement outside of a transaction, which no function can run. 42501 if
 * code of the owner could run in it with the rights of the caller. */
std::string path_alone(Connection& connection, const Shard& shard, const std::string& sql);

/* Why nothing may run in some of the schemas, by OID. Told before anything runs; run_in_shard()
 * looks again. */
std::map<std::string, std::string> find_foreign_code(Connection& connection,
                                                     const std::vector<Shard>& shards);

/* The columns of a query; a Failure if it has none. parameters: none, or $1 and $2, bigint. */
using Parameters = std::vector<std::string>;
std::vector<Column> read_columns(Connection& connection, const Shard& shard, const std::string& sql,
                                 const Parameters& parameters);
/* A SELECT of its rows, all values as text. columns: their number. */
std::string rows_sql(Connection& connection, const Shard& shard, const std::string& sql,
                     const Parameters& parameters, std::size_t columns);

/* Code of one shard can end the session, by exit_on_error for example: the other shards get a new
 * one. Does nothing if the server gives none. */
void reopen_if_lost(Connection& connection);

/* The text of an error of such SQL: without the query, whose line is enough, and with the schema of
 * the extension where its name lacks it, or with a missing right on the shard's schema. The
 * connection is in no transaction, or lost. */
std::string explained(const ServerError& error, Connection& connection, const Shard& shard);
