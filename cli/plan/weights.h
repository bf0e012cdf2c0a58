/* A file with the weight of each shard, for load that is not size: lines "shard,weight". */

#pragma once

#include <map>
#include <string>

/* A # begins a comment. A line that cannot be read is an error that names it. */
std::map<int, double> read_weights(const std::string& file);
