#include "move/compare.h"

#include <algorithm>
#include <future>

#include "base/output.h"
#include "move/row_text.h"

namespace
{

using Range =
    std::pair<std::string, std::string>; /* "10000 rows from key (5)", sum of the hashes */

/* Both sides number their rows in the order of the key: the first range that is not equal holds the
 * first difference. The key is that of the first row of the range, the only one whose number the
 * FILTER lets pass.
 *
 * A sum does not depend on the order of the rows. That of bigint is numeric, so it does not
 * overflow. ONLY: a table that inherits is compared by itself. Without a primary key the whole
 * table is one range. */
std::string query_of(Connection& source, const std::string& table, bool is_hashed)
{
    const std::string key = key_of(source, table);
    const std::string hash =
        is_hashed ? "hashtextextended(" + row_text_of(source, table) + ", 0)" : "NULL::bigint";
    const std::string from = " FROM ONLY " + table + " AS t";
    if (!is_hashed || key.empty())
        return "SELECT count(*) || ' rows', sum(" + hash + ")" + from;
    return "SELECT count(*) || ' rows from key ' || max(key) FILTER (WHERE number % 10000 = 0), "
           "sum(hash) FROM (SELECT ROW(" +
           key + ")::text AS key, " + hash +
           " AS hash, "
           "row_number() OVER (ORDER BY " +
           key + ") - 1 AS number" + from +
           ") AS s "
           "GROUP BY number / 10000 ORDER BY number / 10000";
}

std::vector<Range> read_ranges(Connection& connection, const std::string& table,
                               const std::string& sql)
{
    const Result rows = read_rows(connection, table, sql, 2);
    std::vector<Range> ranges;
    for (int i = 0; i < rows.rows(); i++)
        ranges.emplace_back(rows.text(i, 0), rows.text(i, 1));
    return ranges;
}

/* Of the first range that differs; empty if all are equal. The side that has fewer ranges has "no
 * rows" in their place. */
std::string difference(std::vector<Range> source, std::vector<Range> target)
{
    const std::size_t size = std::max(source.size(), target.size());
    source.resize(size, {"no rows", ""});
    target.resize(size, {"no rows", ""});
    const auto [here, there] = std::mismatch(source.begin(), source.end(), target.begin());
    if (here == source.end())
        return "";
    return "the source has " + here->first + ", the target " + there->first +
           (here->first == there->first ? ", which are not the same" : "");
}

} // namespace

/* The source needs no snapshot, because it is fenced. Clients write to the target by now, so its
 * rows are read in the snapshot of the opening. Both servers work on a table at the same time. */
std::vector<std::string> compare_rows(Connection& source, Connection& snapshot, const Shard& shard,
                                      std::uint64_t max_size)
{
    set_row_text(source);
    set_row_text(snapshot);
    std::vector<std::string> differences;
    const std::vector<std::string> tables = tables_of(source, shard);
    Progress progress("compare (tables)", tables.size());
    for (const std::string& table : tables) {
        const Result size = source.query("SELECT pg_table_size($1::regclass) <= $2::bigint",
                                         {table, std::to_string(max_size)});
        const std::string sql = query_of(source, table, size.flag(0, 0));
        auto target =
            std::async(std::launch::async, [&] { return read_ranges(snapshot, table, sql); });
        const std::string found = difference(read_ranges(source, table, sql), target.get());
        if (!found.empty())
            differences.push_back("table " + table + ": " + found);
        progress.step();
    }
    snapshot.run("COMMIT");
    return differences;
}
