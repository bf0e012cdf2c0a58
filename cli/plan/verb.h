/* The verb plan and its arguments. */

#pragma once

#include <cstdint>
#include <string>
#include <vector>

/* An empty string or list was not given. */
struct PlanOptions {
    std::vector<std::string> dsns;
    bool keep_going = false;
    bool json = false;
    std::string by = "size";
    double over = 0; /* seconds, of writes and pages; 0: a minute */
    std::string weights;
    std::vector<std::string> drain;
    double threshold = 0.1;
    std::size_t max_moves = 8192;
    std::string exclude;
    std::uint64_t rate = 50 << 20; /* bytes per second */
    std::string format;
};

int plan_shards(const PlanOptions& options);
