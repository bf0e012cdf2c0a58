/* The definition of the shard, as pg_dump writes it, in the two parts in which the target gets it.
 */

#pragma once

#include <string>

#include "move/session.h"
#include "postgres/dump.h"

/* Both are texts of statements, to be run as a whole in a transaction of the caller.
 *
 * The objects that rows need: tables, and the indexes by which the apply worker finds rows. */
std::string definition_before_rows(Connection& source, const Shard& shard, const Archive& archive);

/* All other indexes, foreign keys and triggers. It also fills the materialized views. */
std::string definition_after_rows(Connection& source, const Shard& shard, const Archive& archive);
