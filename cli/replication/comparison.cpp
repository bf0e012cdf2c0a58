#include "replication/comparison.h"

#include <future>
#include <map>
#include <set>
#include <thread>

#include "base/output.h"
#include "postgres/row_text.h"
#include "replication/publication.h"
#include "replication/slot.h"

using namespace std::chrono_literals;

namespace
{

/* How long verify waits for a copy that is behind, each time that it reads a table. */
constexpr auto kCatchUp = 60s;
/* A commit with synchronous_commit = off is visible before its WAL is written, and so before the
 * position that the follower is awaited at. The WAL writer writes it within three times
 * wal_writer_delay, 600 ms by default, and so before the next try. */
constexpr auto kPause = 1s;
constexpr int kTries = 3;

/* The rows of a table are put into 65536 parts by a hash of the key, or of the row if there is
 * none: a row that is written to makes one part uncertain, however many rows the table has. */
struct Part {
    std::uint64_t count = 0;
    std::string rows = "no row"; /* "1 row, key (5)" */
    std::string sum{};           /* of the hashes */
    std::string version{};       /* changes with each write, also one that changes nothing */

    bool operator==(const Part& other) const { return rows == other.rows && sum == other.sum; }
};
using Parts = std::map<std::int64_t, Part>;

/* The statement is made on one side and run on both, so that both take the same key. A sum of
 * hashes does not depend on the order of the rows; it is numeric, and cannot overflow. min(key)
 * compares bytes, because two servers may have other collations. The key is cut off, because it is
 * the whole row where there is no primary key. ONLY, because child tables are in the list
 * themselves. Rows that are only counted are one part. */
std::string parts_sql(Connection& server, const std::string& table, bool is_counted)
{
    const std::string from = " FROM ONLY " + table + " AS t";
    if (is_counted)
        return "SELECT 0, count(*), count(*) || ' rows', NULL::numeric, NULL::numeric" + from;
    const std::string key = key_of(server, table);
    const std::string row = row_text_of(server, table);
    return "SELECT hashtextextended(key, 0) & 65535, count(*), CASE count(*) WHEN 1 THEN '1 row, "
           "key ' ELSE "
           "count(*) || ' rows, one with key ' END || left(min(key), 100), sum(hash), sum(version) "
           "FROM "
           "(SELECT " +
           (key.empty() ? row : "ROW(" + key + ")::text") +
           " COLLATE \"C\" AS key, hashtextextended(" + row +
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

/* A table of the shard and of its copy, read several times while clients write. */
class Comparison
{
public:
    Comparison(Connection& publisher, Connection& follower, const std::string& table)
        : publisher_(publisher), follower_(follower), table_(table),
          sql_(parts_sql(publisher, table, false))
    {
    }

    /* A part without a write between before and after was the same when the follower's was read. If
     * clients have written to it, the follower's may be any of those in between. */
    void read(const std::string& slot)
    {
        Parts before = read_parts(publisher_, table_, sql_);
        await_follower(publisher_, slot, kCatchUp);
        Parts copy = read_parts(follower_, table_, sql_);
        Parts after = read_parts(publisher_, table_, sql_);
        const auto numbers = numbers_of({&before, &copy, &after});
        seen_ = numbers.size();
        rows_ = 0;
        for (const auto& part : copy)
            rows_ += part.second.count;
        std::map<std::int64_t, std::string> open;
        for (const std::int64_t i : numbers)
            if (copy[i] == before[i] || copy[i] == after[i])
                equal_.insert(i);
            else if (equal_.count(i) == 0)
                /* "" if clients have written to the part: the copy may be right. */
                open[i] = before[i].version == after[i].version
                              ? difference(publisher_, before[i], follower_, copy[i])
                              : "";
        /* The copy may have lacked an asynchronous commit: a difference is found twice. */
        differences_.clear();
        for (const auto& [i, text] : open)
            if (!text.empty() && open_[i] == text)
                differences_[i] = text;
        open_ = open;
    }

    std::uint64_t rows() const { return rows_; } /* of the follower */

    bool is_done() const { return open_.size() == differences_.size(); }

    std::string difference_found() const { return first_of(differences_); }

    std::string unknown() const
    {
        if (is_done())
            return "";
        return "rows were written to at each of " + std::to_string(kTries) +
               " tries, and are not compared: " +
               std::to_string(open_.size() - differences_.size()) + " of " +
               count_of(seen_, "part") + " of the table";
    }

private:
    Connection& publisher_;
    Connection& follower_;
    const std::string table_;
    const std::string sql_;
    std::size_t seen_ = 0;
    std::uint64_t rows_ = 0;
    /* Parts that were equal at one try. They count as equal for good: all of
     * their rows had come then. */
    std::set<std::int64_t> equal_;
    std::map<std::int64_t, std::string> open_; /* with the difference if it may be one */
    std::map<std::int64_t, std::string> differences_;
};

std::uint64_t size_of(Connection& connection, const std::string& table)
{
    const Result size = connection.query("SELECT pg_table_size($1::regclass)", {table});
    return static_cast<std::uint64_t>(size.number(0, 0));
}

void compare_table_with_follower(Connection& publisher, Connection& follower,
                                 const std::string& table, std::uint64_t size,
                                 const std::string& slot, FollowerRows& found, const Note& note)
{
    Comparison comparison(publisher, follower, table);
    comparison.read(slot);
    for (int i = 1; i < kTries && !comparison.is_done(); i++) {
        std::this_thread::sleep_for(kPause);
        comparison.read(slot);
    }
    found.rows += comparison.rows();
    found.bytes += size;
    const std::string difference = comparison.difference_found();
    const std::string unknown = comparison.unknown();
    if (!difference.empty())
        found.differences.push_back("table " + table + ": " + difference);
    if (!unknown.empty())
        found.unknown.push_back("table " + table + ": " + unknown);
    if (note && difference.empty() && unknown.empty())
        note({table});
}

} // namespace

std::string compare_table(Connection& one, Connection& other, const std::string& table,
                          bool is_counted)
{
    set_row_text(one);
    set_row_text(other);
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

/* The source needs no snapshot, because it is fenced. Clients write to the target by now, so its
 * rows are read in the snapshot of the opening. Both servers work on a table at the same time. */
std::vector<std::string> compare_rows(Connection& source, Connection& snapshot,
                                      const Shards& shards, std::uint64_t max_size)
{
    std::vector<std::string> found;
    const std::vector<std::string> tables = tables_of(source, shards);
    Progress progress("compare (tables)", tables.size());
    for (const std::string& table : tables) {
        if (const std::string text =
                compare_table(source, snapshot, table, size_of(source, table) > max_size);
            !text.empty())
            found.push_back("table " + table + ": " + text);
        progress.step();
    }
    snapshot.run("COMMIT");
    return found;
}

FollowerRows compare_with_follower(Connection& publisher, Connection& follower,
                                   const std::vector<std::string>& tables, const std::string& slot,
                                   std::uint64_t max_size, const Note& note)
{
    /* It sets row_security = off, so a policy that applies to the role is an error. Rows that are
     * hidden on one side would look like differences. */
    set_row_text(publisher);
    set_row_text(follower);
    FollowerRows found;
    Progress progress("compare (tables)", tables.size());
    for (const std::string& table : tables) {
        const std::uint64_t size = size_of(publisher, table);
        if (size <= max_size)
            compare_table_with_follower(publisher, follower, table, size, slot, found, note);
        progress.step();
    }
    return found;
}
