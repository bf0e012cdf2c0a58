/* The load of the tables of a server, measured: plan --by writes, --by pages. */

#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "postgres/connection.h"

/* A measurement, and its length. */
struct Sample {
    std::string by; /* writes, pages; else nothing is measured */
    double seconds = 0;

    bool is_wanted() const { return by == "writes" || by == "pages"; }
};

/* The load by schema. Writes are rows that were inserted, updated or deleted; pages are those of
 * tables and indexes that were looked at, in the buffers or not. A Failure on a standby, which
 * counts no writes, and if the counters were reset meanwhile or are off. */
std::map<std::string, std::int64_t> measure_load(Connection& connection, const Sample& sample);
