/* The shards of a server, as its catalogue has them. */

#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/shards.h"
#include "postgres/connection.h"

/* A SELECT of shard and schema_name, without those that are somewhere else or not here yet, and
 * without those whose sequence is a copy on a Citus worker: the coordinator has them. */
std::string open_shards_sql(Connection& connection);

/* All shards that are open, by number; a number twice if two schemas have it. Only catalogs and the
 * records of moves and of a split are read: no code of a shard's owner runs. */
std::vector<Shard> read_shards(Connection& connection);

/* Shards that are left out of these, and told by a warning, because the name of the schema or of
 * its owner is not UTF-8. The name is escaped. */
Shards find_unreadable(Connection& connection);

/* A SELECT that locks these numbers and the names of these schemas, until a transaction block or
 * else the session ends. It is an error if another schema makes IDs of one of the numbers. */
std::string claim_sql(const Connection& connection, const Shards& shards);

/* The numbers that several open shards of a server have. A text names the schemas and the objects
 * that make the IDs, each with its owner, and the statement that removes the object: any role that
 * may create a table can plant one. The catalogs are read once more, and only if there are such
 * numbers. */
std::map<int, std::string> find_twice(Connection& connection, const std::vector<Shard>& shards);

/* Failure with these texts if one of the wanted numbers is such a one. */
void require_one_schema_each(Connection& connection, const std::vector<Shard>& shards,
                             const ShardSet& wanted);

/* The shards that are not among the open ones. */
Shards find_missing(const Shards& open, const Shards& shards);

/* The one shard of a schema, among these open shards of a server. Failure if the schema is none of
 * them, or has several numbers. */
Shard find_shard(const std::vector<Shard>& shards, const std::string& schema,
                 const std::string& server);
