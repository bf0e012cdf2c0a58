/* Digests of tables: tables with equal ones have the same rows. */

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "postgres/connection.h"

struct SizedTable {
    std::string name;        /* as SQL writes it */
    std::uint64_t bytes = 0; /* without indexes */
};
using SizedTables = std::vector<SizedTable>;

SizedTables with_sizes(Connection& connection, const std::vector<std::string>& tables);

/* The tables in their order: many small ones together, or a large one. */
std::vector<SizedTables> batches_of(const SizedTables& tables);

struct Digest {
    std::uint64_t rows = 0;
    std::string sum; /* of the rows' hashes; empty if that would not show each difference */

    /* If not, the rows may be the same all the same: snowflake_internal.digest(). */
    bool proves_equal(const Digest& other) const
    {
        return !sum.empty() && rows == other.rows && sum == other.sum;
    }
};

/* The digest of each table, under its lock. The caller has called set_row_text(). */
std::vector<Digest> read_digests(Connection& connection, const SizedTables& tables);
