/* Keys of the template that each shard counts by itself. */

#pragma once

#include "base/shards.h"
#include "postgres/connection.h"

/* Warns of keys that are serial or identity columns, as the migration of a new model makes them:
 * the rows of all shards have the keys 1, 2, 3, and the key does not lead to the shard. */
void warn_of_counted_keys(Connection& connection, const Shard& origin);
