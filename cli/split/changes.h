/* DDL that was made on the old server after the promotion. The fence stops none, and no WAL leads
 * to the new server any more. */

#pragma once

#include <string>

#include "base/shards.h"
#include "postgres/connection.h"

/* Call it after the promotion and before the new server is open: the transaction that it begins
 * sees the definition as it came by the WAL. */
void see_promoted(Connection& promoted);

/* Warns of changes. Returns what to say of the state of the shards, or nothing. promoted: of
 * see_promoted(); if it was not called, clients may have changed the new server, too. */
std::string tell_of_changes(Connection& old, Connection& promoted, const Shards& shards);

/* Runs its queries on one of the servers, in a transaction of the caller. record: the schema of the
 * record, or empty if the server has none yet. */
void try_to_tell(Connection& connection, const Shards& shards, const std::string& record);
