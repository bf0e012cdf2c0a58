/* Up to which ID the rows of a shard can be read. */

#pragma once

#include <map>
#include <string>

#include "base/shards.h"
#include "postgres/connection.h"

/* All sequences that columns and functions of a schema draw from. */
struct Source {
    std::string sequences; /* an oid[] */
    std::string epoch;
    std::string without_right; /* an object that draws although its owner may not, or empty */
    std::string problem;       /* why its IDs have no one order; empty if they have */
};

/* By the OID of the schema. */
std::map<std::string, Source> read_sources(Connection& connection);

/* No row of the shard can appear at or below it any more, and all that were committed before the
 * call are at or below it; rows ahead of the server's clock can be above. Waits for the
 * transactions that have drawn: a Failure if they do not end in time. timeout: seconds. */
std::int64_t settle(Connection& connection, const Shard& shard, const Source& source,
                    double timeout);
