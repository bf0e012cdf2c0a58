/* A trial of the definition on the target, in a transaction that is rolled back. */

#pragma once

#include <string>

#include "base/shards.h"
#include "postgres/dump.h"
#include "postgres/obstacles.h"

/* Makes the subscription, and the definition in sessions of the owners of the schemas. If there is
 * an error, it is made again object by object, and each error is an obstacle, such as that the
 * target's server does not get to the source, or that an owner lacks a right there. The needs of
 * the definition are there: see needed.h.
 *
 * Others do not see these objects. A foreign key locks the table of another schema that it refers
 * to against writing until the rollback. A table that is locked by others is waited for 100 ms,
 * because its writers wait behind this transaction; then it is an obstacle, too. There are no rows,
 * and materialized views are not filled, so no object takes long.
 *
 * archive: of the source; null if a need of it is missing there: the rest alone is tried. move:
 * the name of its subscription and schema. replaces_copy: the closed copy of an undone move, and
 * its record, are dropped before. */
Obstacles try_definition(Connection& target, const Shards& shards, const Archive* archive,
                         const std::string& move, const std::string& source_dsn,
                         bool replaces_copy);

/* The definition alone, which clone makes where its template is: the schemas of these names are
 * renamed meanwhile. */
Obstacles try_items(Connection& server, const Archive& archive, bool replaces_copy);

/* The subscription alone: whether the server can connect by the string. */
Obstacles try_subscription(Connection& subscriber, const std::string& name, const std::string& dsn);
