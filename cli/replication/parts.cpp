#include "replication/parts.h"

#include <algorithm>
#include <future>

#include "base/output.h"
#include "base/quoting.h"
#include "base/timeouts.h"
#include "postgres/row_text.h"
#include "replication/slots.h"

namespace
{

/* Rows whose keys are parameters of a statement, and how often sample() reads them. */
constexpr std::uint64_t kFewRows = 200000;
constexpr int kSamples = 50;

/* The key of a row as text; the whole row if there is none. */
std::string key_text(const std::string& key, const std::string& row)
{
    return (key.empty() ? row : "ROW(" + key + ")::text") + " COLLATE \"C\"";
}

std::string part_of(const std::string& key)
{
    return "hashtextextended(" + key + ", 0) & 65535";
}

/* The statement is made on one side and run on both, so that both take the same key. A sum of
 * hashes does not depend on the order of the rows; it is numeric, and cannot overflow. min(key)
 * compares bytes, because two servers may have other collations. The key is cut off, because it is
 * the whole row where there is no primary key. ONLY, because child tables are in the list
 * themselves. Rows that are only counted are one part. */
std::string parts_sql(Connection& server, const std::string& table, bool is_counted,
                      const std::string& condition = "")
{
    const std::string from = " FROM ONLY " + table + " AS t" + condition;
    if (is_counted)
        return "SELECT 0, count(*), count(*) || ' rows', NULL::numeric, NULL::numeric" + from;
    const std::string key = key_of(server, table);
    const std::string row = row_text_of(server, table);
    return "SELECT " + part_of("key") +
           ", count(*), CASE count(*) WHEN 1 THEN '1 row, key ' ELSE "
           "count(*) || ' rows, one with key ' END || left(min(key), 100), sum(hash), sum(version) "
           "FROM (SELECT " +
           key_text(key, row) + " AS key, hashtextextended(" + row +
           ", 0) AS hash, hashtextextended(xmin::text, 0) AS version" + from + ") AS s GROUP BY 1";
}

Parts read_parts(Connection& connection, const std::string& table, const std::string& sql)
{
    const Result rows = read_rows(connection, table, sql, 5);
    Parts parts;
    for (int i = 0; i < rows.rows(); i++)
        parts[rows.number(i, 0)] = {static_cast<std::uint64_t>(rows.number(i, 1)), rows.text(i, 2),
                                    rows.text(i, 3), rows.text(i, 4)};
    return parts;
}

std::string difference(const Connection& here, const Part& part, const Connection& there,
                       const Part& copy)
{
    return here.server() + " has " + part.rows + ", " + there.server() + " has " + copy.rows +
           (part.rows == copy.rows ? ", which is not the same" : "");
}

/* The first differences, and how many more there are. */
std::string first_of(const std::map<std::int64_t, std::string>& differences)
{
    constexpr std::size_t kMost = 3;
    std::string text;
    std::size_t shown = 0;
    for (const auto& [part, one] : differences)
        if (shown < kMost)
            text += (shown++ == 0 ? "" : "; ") + one;
    const std::size_t more = differences.size() - shown;
    return text + (more > 0 ? "; and " + count_of(more, "more difference") : "");
}

/* The numbers of all parts. For a number that one side lacks, operator[] adds a part with no row.
 */
std::set<std::int64_t> numbers_of(std::initializer_list<const Parts*> sides)
{
    std::set<std::int64_t> numbers;
    for (const Parts* const parts : sides)
        for (const auto& part : *parts)
            numbers.insert(part.first);
    return numbers;
}

} // namespace

std::string why_unread(const ServerError& error)
{
    if (error.sqlstate != kInsufficientPrivilege)
        throw error;
    return "its owner cannot read all rows: " + std::string(error.what());
}

std::string compare_parts(Connection& one, Connection& other, const std::string& table,
                          bool is_counted)
{
    const std::string sql = parts_sql(one, table, is_counted);
    auto reading = std::async(std::launch::async, [&] { return read_parts(other, table, sql); });
    Parts here = read_parts(one, table, sql);
    Parts there = reading.get();
    std::map<std::int64_t, std::string> differences;
    for (const std::int64_t i : numbers_of({&here, &there}))
        if (!(here[i] == there[i]))
            differences[i] = difference(one, here[i], other, there[i]);
    return first_of(differences);
}

Comparison::Comparison(Connection& publisher, Connection& follower, const std::string& table)
    : publisher_(publisher), follower_(follower), table_(table),
      sql_(parts_sql(publisher, table, false))
{
}

std::string Comparison::file() const
{
    return publisher_.query("SELECT pg_relation_filenode($1::regclass)", {table_}).text(0, 0);
}

void Comparison::read(const std::string& slot)
{
    const std::string file_before = file();
    Parts before = read_parts(publisher_, table_, sql_);
    await_follower(publisher_, follower_, slot, timeouts::kCatchUp);
    Parts copy = read_parts(follower_, table_, sql_);
    Parts after = read_parts(publisher_, table_, sql_);
    tries_++;
    rewrites_ += file() == file_before ? 0 : 1;
    const auto numbers = numbers_of({&before, &copy, &after});
    if (!is_narrow_) {
        seen_ = numbers.size();
        rows_ = 0;
        for (const auto& part : copy)
            rows_ += part.second.count;
    }
    std::map<std::int64_t, std::string> open;
    open_rows_ = 0;
    for (const std::int64_t i : numbers)
        if (copy[i] == before[i] || copy[i] == after[i]) {
            equal_.insert(i);
        } else if (equal_.count(i) == 0) {
            /* "" if clients have written to the part: the copy may be right. */
            open[i] = before[i].version == after[i].version
                          ? difference(publisher_, before[i], follower_, copy[i])
                          : "";
            open_rows_ += std::max(after[i].count, copy[i].count);
            written_to_ = after[i].rows;
        }
    /* The copy may have lacked an asynchronous commit: a difference is found twice. */
    differences_.clear();
    for (const auto& [i, text] : open)
        if (!text.empty() && open_[i] == text)
            differences_[i] = text;
    open_ = open;
}

std::string Comparison::keys_of_open(Connection& server, const KeyColumns& key) const
{
    std::vector<std::string> parts;
    for (const auto& part : open_)
        parts.push_back(std::to_string(part.first));
    const std::string sql = "SELECT coalesce(json_agg(k), '[]') FROM (SELECT " + key.texts +
                            " FROM ONLY " + table_ + " AS t WHERE " +
                            part_of(key_text(key_of(server, table_), "")) + " = ANY ('{" +
                            joined(parts, ",") + "}'::bigint[])) AS k";
    return "SELECT " + key.names + " FROM json_to_recordset(" +
           publisher_.literal(read_rows(server, table_, sql, 1).text(0, 0)) + ") AS k (" +
           key.types + ")";
}

bool Comparison::narrow()
{
    const KeyColumns key = key_columns_of(publisher_, table_);
    if (is_narrow_ || key.names.empty() || open_rows_ > kFewRows)
        return is_narrow_;
    /* The follower's, too: rows that only it has. */
    sql_ = parts_sql(publisher_, table_, false,
                     " WHERE (" + key.names + ") IN (" + keys_of_open(publisher_, key) +
                         " UNION ALL " + keys_of_open(follower_, key) + ")");
    for (auto& part : open_)
        part.second.clear(); /* of other rows than those of the next try */
    differences_.clear();
    is_narrow_ = true;
    return true;
}

void Comparison::sample()
{
    const auto read_states = [&](Connection& server) {
        std::map<std::int64_t, std::set<std::string>> states;
        for (int i = 0; i < kSamples; i++)
            for (const auto& [number, part] : read_parts(server, table_, sql_))
                states[number].insert(part.rows + " " + part.sum);
        return states;
    };
    auto reading = std::async(std::launch::async, [&] { return read_states(follower_); });
    auto here = read_states(publisher_);
    for (const auto& [number, there] : reading.get())
        for (const std::string& state : there)
            if (here[number].count(state) > 0) {
                equal_.insert(number);
                open_.erase(number);
                differences_.erase(number);
            }
}

std::string Comparison::difference_found() const
{
    return first_of(differences_);
}

std::string Comparison::unknown() const
{
    if (is_done())
        return "";
    const std::string tries = std::to_string(tries_) + " tries";
    return (rewrites_ == tries_ ? "the table was rewritten at each of " + tries +
                                      ", as by REPACK (CONCURRENTLY) or VACUUM FULL, and "
                                : "rows were written to at each of " + tries + ", and ") +
           std::to_string(open_.size() - differences_.size()) + " of " + count_of(seen_, "part") +
           " of the table could not be compared: " + written_to_;
}
