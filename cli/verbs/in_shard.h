/* SQL of query and run in a shard: in a session of the shard's owner (postgres/session.h), which is
 * found by the OID of the schema: it stays the same when the owner changes the name. */

#pragma once

#include <list>
#include <string>

#include "base/shards.h"
#include "postgres/session.h"

/* A session for each connection, as it will have while it works: too few background workers, or a
 * connection that is lost, are a Failure before anything runs. Other errors are told later, by the
 * shard. */
void require_workers(Connection& first, std::list<Connection>& more, const Shard& shard);

/* As begin_session(), with the schema as search_path. */
void begin_in_shard(Connection& connection, const Shard& shard, const std::string& commands);
/* Code of one shard can end the session, by exit_on_error for example: the other shards get a new
 * one. Does nothing if the server gives none. */
void reopen_if_lost(Connection& connection);

/* The text of an error of such SQL: without the query, whose line is enough, and with the schema of
 * the extension where its name lacks it, or with a missing right on the shard's schema. The
 * connection is in no transaction, or lost. */
std::string explained(const ServerError& error, Connection& connection, const Shard& shard);
