/* The large indexes of a shard on the target, and its keys among them. They are built side by side
 * when the rows are there. */

#pragma once

#include <string>
#include <vector>

#include "move/session.h"
#include "postgres/dump.h"

/* Takes the large ones out of the items of the archive after the rows, and returns them, the
 * largest first. They are those of ordinary tables: a partitioned index is made without its parts.
 */
std::vector<Archive::Item> take_large_indexes(Connection& source, const Move& move,
                                              std::vector<Archive::Item>& items);

/* Each in a transaction of its own, by sessions of the owner over as many connections. */
void build_indexes(Connection& target, const Archive& archive,
                   const std::vector<Archive::Item>& indexes, int connections);
