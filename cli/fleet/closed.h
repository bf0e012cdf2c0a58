/* Writes that the fence of a closed shard does not stop. */

#pragma once

#include <string>
#include <vector>

#include "fleet/findings.h"
#include "fleet/in_transit.h"
#include "postgres/obstacles.h"

/* Enabled subscriptions that write into tables of these shards, but that of this name: their
 * workers fire no trigger FOR EACH STATEMENT. */
Obstacles find_writing_subscriptions(Connection& connection, const Shards& shards,
                                     const std::string& own);

/* Parents outside of these shards, of which tables of these shards are partitions or children: a
 * statement that names the parent fires no trigger FOR EACH STATEMENT of the table. */
Obstacles find_open_parents(Connection& connection, const Shards& shards);

/* Finds both, and tables whose trigger does not fire as it has to, in the shards that are closed
 * here and whose move or split is at its end. */
void check_closed(Connection& connection, const std::vector<InTransit>& shards,
                  std::vector<MoveFinding>& findings);
