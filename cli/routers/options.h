/* The options of a switch, for both move and split. */

#pragma once

#include <cstdint>
#include <string>
#include <vector>

struct SwitchOptions {
    std::vector<std::string> pgbouncer; /* consoles, and the file of each */
    std::vector<std::string> config;
    std::string switch_command;
    std::string alias = "shard{}";
    std::uint64_t max_lag = 1 << 20; /* bytes of WAL */
    double timeout = 10;             /* seconds */
};
