/* Objects of other schemas that need one of the shards', or that these need. */

#pragma once

#include <string>
#include <vector>

#include "base/shards.h"
#include "postgres/connection.h"

/* "view v needs table insta5.users": it cannot be moved with the shards, and would be dropped with
 * them. A schema that is gone has none. */
std::vector<std::string> find_dependents(Connection& connection, const Shards& shards);

/* A Failure that names them, or an extension in the schemas. */
void require_no_dependents(Connection& connection, const Shards& shards);

/* The same before they would be dropped: CASCADE drops them without a word, because NOTICEs are off
 * (client_min_messages). */
void require_none_dropped(Connection& connection, const Shards& shards);

/* DROP SCHEMA of the shards and of the schema with their record, in a transaction of the caller. An
 * object of another schema that needs a shard is a Failure: ACCESS EXCLUSIVE locks of the tables
 * come before the look, so that nobody can make a view, a partition or a key between the two. */
void drop_shards(Connection& connection, const Shards& shards, const std::string& record);

/* Warns of DEFAULTs that draw from sequences outside of the shards: no position of these is carried
 * to the other server. */
void tell_of_outside_sequences(Connection& source, const Shards& shards);
