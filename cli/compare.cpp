/* snowflake-shard move: the rows of the fenced source against those of the target when it opened.
 */

#include <future>

#include "move.h"
#include "output.h"

namespace
{

struct Range {
    std::string first; /* key of the first row */
    std::string rows;
    std::string hash; /* sum of the rows' hashes; empty: not computed */

    bool operator==(const Range& other) const { return rows == other.rows && hash == other.hash; }
};

struct TableToCompare {
    std::string name;
    std::string order; /* the columns of the primary key; empty: none */
    std::int64_t size;
};

/* Text is ordered by its bytes, because the collations of two servers may differ. */
std::vector<TableToCompare> read_tables(Move& move)
{
    const Result rows = move.source.query(
        "SELECT c.oid::regclass, (SELECT pg_catalog.string_agg(pg_catalog.quote_ident(a.attname) "
        "|| CASE WHEN a.attcollation <> 0 THEN ' COLLATE pg_catalog.\"C\"' ELSE '' END, ', ' "
        "ORDER BY k.place) FROM pg_catalog.pg_index AS i CROSS JOIN LATERAL "
        "pg_catalog.unnest(i.indkey) WITH ORDINALITY AS k (attnum, place) "
        "JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = k.attnum "
        "WHERE i.indrelid = c.oid AND i.indisprimary AND k.place <= i.indnkeyatts), "
        "pg_catalog.pg_table_size(c.oid) FROM pg_catalog.pg_class AS c JOIN "
        "pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND "
        "c.relkind = 'r' ORDER BY c.oid",
        {move.shard.schema});
    std::vector<TableToCompare> tables;
    for (int i = 0; i < rows.rows(); i++)
        tables.push_back({rows.text(i, 0), rows.text(i, 1), rows.number(i, 2)});
    return tables;
}

/* Both sides number their rows in the order of the key: the first range that is not equal holds the
 * first difference. Only the settings decide how a row is written as text. */
std::vector<Range> read_ranges(Connection& connection, const TableToCompare& table, bool is_hashed)
{
    const std::string hash = "pg_catalog.hashtextextended(t::text, 0)";
    const std::string from = " FROM ONLY " + table.name + " AS t";
    std::string sql = "SELECT '', pg_catalog.count(*), " +
                      (is_hashed ? "pg_catalog.sum(" + hash + ")" : "NULL") + from;
    if (is_hashed && !table.order.empty())
        sql = "SELECT pg_catalog.max(key) FILTER (WHERE number % 10000 = 0), pg_catalog.count(*), "
              "pg_catalog.sum(hash) FROM (SELECT pg_catalog.row_number() OVER (ORDER BY " +
              table.order + ") - 1 AS number, ROW(" + table.order + ")::text AS key, " + hash +
              " AS hash" + from + ") AS s GROUP BY number / 10000 ORDER BY number / 10000";
    const Result rows = connection.query(sql);
    std::vector<Range> ranges;
    for (int i = 0; i < rows.rows(); i++)
        ranges.push_back({rows.text(i, 0), rows.text(i, 1), rows.text(i, 2)});
    return ranges;
}

std::string difference(const std::vector<Range>& source, const std::vector<Range>& target)
{
    std::size_t i = 0;
    while (i < source.size() && i < target.size() && source[i] == target[i])
        i++;
    if (i == source.size() && i == target.size())
        return "";
    const auto text = [i](const std::vector<Range>& ranges) {
        return i >= ranges.size()
                   ? "no rows"
                   : ranges[i].rows + " rows" +
                         (ranges[i].first.empty() ? "" : " from key " + ranges[i].first);
    };
    return "the source has " + text(source) + ", the target " + text(target) +
           (i < source.size() && i < target.size() && source[i].rows == target[i].rows
                ? ", which are not the same"
                : "");
}

} // namespace

std::vector<std::string> compare_rows(Move& move, Connection& snapshot)
{
    const std::string settings = "SET row_security = off; SET DateStyle = ISO; SET TimeZone = UTC; "
                                 "SET IntervalStyle = postgres; SET extra_float_digits = 1; "
                                 "SET bytea_output = hex; SET xmlbinary = base64; "
                                 "SET lc_monetary = 'C'";
    move.source.run(settings);
    snapshot.run(settings);
    std::vector<std::string> differences;
    const std::vector<TableToCompare> tables = read_tables(move);
    Progress progress("compare (tables)", tables.size());
    for (const TableToCompare& table : tables) {
        const bool is_hashed = table.size <= static_cast<std::int64_t>(move.options.verify_size);
        auto target =
            std::async(std::launch::async, [&] { return read_ranges(snapshot, table, is_hashed); });
        const std::vector<Range> source = read_ranges(move.source, table, is_hashed);
        const std::string found = difference(source, target.get());
        if (!found.empty())
            differences.push_back("table " + table.name + ": " + found);
        progress.step();
    }
    snapshot.run("COMMIT");
    return differences;
}
