/* The rows of the fenced source against those of the target when it was opened. */

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "move/session.h"

/* Tables whose rows are not the same on both sides, with the range of the primary key. The snapshot
 * is a connection in a transaction, which ends here. All rows of tables up to this size (in bytes)
 * are compared, others are counted. */
std::vector<std::string> compare_rows(Connection& source, Connection& snapshot, const Shard& shard,
                                      std::uint64_t max_size);
