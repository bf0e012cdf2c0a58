/* SQL of query and run in a shard: in a session of the shard's owner.
 *
 * Objects of a shard can hold code of its owner: a view, a trigger, the CHECK of a domain. So the
 * SQL runs in a process of the server that is authenticated as the owner, and that the connection
 * drives by functions of the library: see src/session/session.h. They take the OID of the schema,
 * which stays the same when the owner changes the name. */

#pragma once

#include <functional>
#include <list>
#include <map>
#include <string>
#include <vector>

#include "base/shards.h"
#include "postgres/values.h"

/* Why nothing may run in some of the schemas, by OID. Told before anything runs; begin_in_shard()
 * looks again. */
std::map<std::string, std::string> find_session_problems(Connection& connection,
                                                         const std::vector<Shard>& shards);

/* A session for each connection, as it will have while it works: too few background workers, or a
 * connection that is lost, are a Failure before anything runs. Other errors are told later, by the
 * shard. */
void require_workers(Connection& first, std::list<Connection>& more, const Shard& shard);

/* A session that is new or as new, with the schema as search_path. commands run in it first: BEGIN,
 * or none. lock_timeout is that of the connection, which is in a transaction that has written
 * nothing; when it ends, one of the session ends, too. */
void begin_in_shard(Connection& connection, const Shard& shard, const std::string& commands);
/* COMMIT of the session. */
void commit_in_shard(Connection& connection);

/* Statements, in a transaction of the session that they cannot end. Errors do not repeat the text.
 */
void run_in_shard(Connection& connection, const std::string& sql);
/* One statement. Neither the session nor the connection is in a transaction. */
void run_alone_in_shard(Connection& connection, const std::string& sql);

/* Opens a query in the session, and returns its columns; a Failure if it has none. parameters:
 * none, or $1 and $2, bigint. */
using Parameters = std::vector<std::string>;
std::vector<Column> open_in_shard(Connection& connection, const std::string& sql,
                                  const Parameters& parameters);
/* The rows of that query, in batches that memory can hold. */
void read_in_shard(Connection& connection, const std::vector<Column>& columns,
                   const std::function<void(std::vector<Row> rows)>& take);

/* Code of one shard can end the session, by exit_on_error for example: the other shards get a new
 * one. Does nothing if the server gives none. */
void reopen_if_lost(Connection& connection);

/* The text of an error of such SQL: without the query, whose line is enough, and with the schema of
 * the extension where its name lacks it, or with a missing right on the shard's schema. The
 * connection is in no transaction, or lost. */
std::string explained(const ServerError& error, Connection& connection, const Shard& shard);
