#include "replication/digests.h"

#include "base/quoting.h"

namespace
{

/* A batch's statement locks its tables, so their number is small. */
constexpr std::uint64_t kBytes = 32 << 20;
constexpr std::size_t kTables = 100;

/* Rows of the parameter $1: the OIDs of tables, looked up once, and their order. */
const char* const kFromTables = " FROM unnest($1::regclass[]) WITH ORDINALITY AS t (rel, n)";

std::uint64_t unsigned_of(const Result& rows, int row, int column)
{
    return static_cast<std::uint64_t>(rows.number(row, column));
}

} // namespace

SizedTables with_sizes(Connection& connection, const std::vector<std::string>& tables)
{
    const Result sizes = connection.query(std::string("SELECT coalesce(pg_table_size(rel), 0)") +
                                              kFromTables + " ORDER BY n",
                                          {sql_array(tables)});
    SizedTables sized;
    for (const std::string& table : tables)
        sized.push_back({table, unsigned_of(sizes, static_cast<int>(sized.size()), 0)});
    return sized;
}

std::vector<SizedTables> batches_of(const SizedTables& tables)
{
    std::vector<SizedTables> batches;
    std::uint64_t bytes = 0;
    for (const SizedTable& table : tables) {
        if (batches.empty() || bytes + table.bytes > kBytes || batches.back().size() == kTables) {
            batches.emplace_back();
            bytes = 0;
        }
        batches.back().push_back(table);
        bytes += table.bytes;
    }
    return batches;
}

std::vector<Digest> read_digests(Connection& connection, const SizedTables& tables)
{
    std::vector<std::string> names;
    for (const SizedTable& table : tables)
        names.push_back(table.name);
    const Result rows = connection.query(std::string("SELECT d.*") + kFromTables +
                                             ", snowflake_internal.digest(rel) AS d ORDER BY n",
                                         {sql_array(names)});
    std::vector<Digest> digests;
    for (int i = 0; i < rows.rows(); i++)
        digests.push_back({unsigned_of(rows, i, 0), rows.text(i, 1)});
    return digests;
}
