/* A file with the weight of each shard, for load that is not size: lines "shard,weight". */

#pragma once

#include <map>
#include <string>

/* A # begins a comment. A line that cannot be read is a UsageError that names it. Weights are 0 or
 * more, in any unit. A shard without a line is not in the result. */
std::map<int, double> read_weights(const std::string& file);
