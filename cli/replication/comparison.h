/* The rows of tables against those of their copy on another server. */

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "base/shards.h"
#include "postgres/connection.h"

/* Tables whose rows are not the same on the fenced source and on the target when it was opened:
 * "table insta5.users: ...". The snapshot is a connection to the target in a transaction, which
 * ends here. All rows of tables up to this size (in bytes) are compared, others are counted. */
std::vector<std::string> compare_rows(Connection& source, Connection& snapshot,
                                      const Shards& shards, std::uint64_t max_size);

/* The first differences of the rows of a table to which nobody writes meanwhile, and how many more
 * there are; empty if there are none. */
std::string compare_table(Connection& one, Connection& other, const std::string& table);

/* The result of a comparison while clients may write. */
struct FollowerRows {
    std::vector<std::string> differences; /* "table insta5.users: ..." */
    /* The same, of rows that could not be compared: they are not known to be equal. */
    std::vector<std::string> unknown;
    std::uint64_t rows = 0; /* that were compared, and the bytes of their tables */
    std::uint64_t bytes = 0;
};

/* Called with tables whose rows were found equal, as soon as they are. */
using Note = std::function<void(const std::vector<std::string>& tables)>;

/* Tables as SQL writes their names; those above max_size (in bytes) are left out. The follower
 * reads the slot of the publisher. A Failure if it does not, or does not catch up. Each table is
 * read several times; nothing is locked against writing. */
FollowerRows
compare_with_follower(Connection& publisher, Connection& follower,
                      const std::vector<std::string>& tables, const std::string& slot,
                      std::uint64_t max_size = std::numeric_limits<std::uint64_t>::max(),
                      const Note& note = {});
