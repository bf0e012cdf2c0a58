/* Schemas that the command has made: their owner can exchange the names of two schemas between two
 * transactions of the command. */

#pragma once

#include <string>

#include "postgres/connection.h"

/* object: the lock that CREATE TABLE takes. ALTER SCHEMA ... RENAME waits for it in some releases
 * only: in 15.20 and 17.12, and not in 15.18 and 18.6.
 * row: that of the row in pg_namespace, for which RENAME waits in all releases. For a role that is
 * no superuser, and cannot take it, the lock of the object. The transaction gets an ID, and
 * CREATE_REPLICATION_SLOT waits for the end of each transaction with an ID: so not where one is
 * made meanwhile. Not both: a cutover waits for transactions that have an ID and the lock of the
 * object, because they may have made a table. */
enum class SchemaLock { object, row };

/* At the beginning of a transaction that finds schemas by name: the names stay until its end.
 * Returns false if a name leads to another schema than in the transaction that has noted the OIDs.
 * names: an array of names as SQL writes them; schemas: an array of OIDs, in the same order. */
bool lock_schemas(Connection& connection, const std::string& names, const std::string& schemas,
                  SchemaLock lock = SchemaLock::row);
