#include "move/follower.h"

#include <map>
#include <set>
#include <thread>

#include "base/output.h"
#include "move/row_text.h"

using namespace std::chrono_literals;

namespace
{

/* How long verify waits for a copy that is behind, each time that it reads a table. */
constexpr auto kCatchUp = 60s;
constexpr auto kPoll = 50ms;
/* A commit with synchronous_commit = off is visible before its WAL is written, and so before the
 * position that the follower is awaited at. The WAL writer writes it within three times
 * wal_writer_delay, 600 ms by default, and so before the next try. */
constexpr auto kPause = 1s;
constexpr int kTries = 3;

/* The rows of a table are put into 65536 parts by a hash of the key, or of the row if there is
 * none: a row that is written to makes one part uncertain, however many rows the table has. */
struct Part {
    std::string rows = "no row"; /* "1 row, key (5)" */
    std::string sum{};           /* of the hashes */

    bool operator==(const Part& other) const { return rows == other.rows && sum == other.sum; }
    bool operator!=(const Part& other) const { return !(*this == other); }
};
using Parts = std::map<std::int64_t, Part>;

/* The statement is made on the publisher and run on both sides, so that both take the same
 * key. A sum of hashes does not depend on the order of the rows; it is numeric, and cannot
 * overflow. min(key) compares bytes, because two servers may have other collations. The key is
 * cut off, because it is the whole row where there is no primary key. ONLY, because child
 * tables are in the list themselves. */
std::string parts_sql(Connection& publisher, const std::string& table)
{
    const std::string key = key_of(publisher, table);
    const std::string row = row_text_of(publisher, table);
    return "SELECT hashtextextended(key, 0) & 65535, CASE count(*) WHEN 1 THEN '1 row, key ' ELSE "
           "count(*) || ' rows, one with key ' END || left(min(key), 100), sum(hash) FROM "
           "(SELECT " +
           (key.empty() ? row : "ROW(" + key + ")::text") +
           " COLLATE \"C\" AS key, hashtextextended(" + row + ", 0) AS hash FROM ONLY " + table +
           " AS t) AS s GROUP BY 1";
}

Parts read_parts(Connection& connection, const std::string& table, const std::string& sql)
{
    const Result rows = read_rows(connection, table, sql, 3);
    Parts parts;
    for (int i = 0; i < rows.rows(); i++)
        parts[rows.number(i, 0)] = {rows.text(i, 1), rows.text(i, 2)};
    return parts;
}

/* Returns when the follower has everything that is visible on the publisher now. */
void await_follower(Connection& publisher, const std::string& slot)
{
    const std::string now = publisher.query("SELECT pg_current_wal_lsn()").text(0, 0);
    const Clock::time_point deadline = Clock::now() + kCatchUp;
    for (;; std::this_thread::sleep_for(kPoll)) {
        const Result follower = publisher.query(R"(
            SELECT confirmed_flush_lsn >= $2::pg_lsn, active
            FROM pg_replication_slots WHERE slot_name = $1)",
                                                {slot, now});
        if (follower.rows() == 0)
            throw Failure("slot " + slot + " is gone");
        if (follower.flag(0, 0))
            return;
        /* Asked after the position: a copy that has everything can be compared though it is not
         * connected at this moment. */
        if (!follower.flag(0, 1))
            throw Failure("the copy's server does not read slot " + slot);
        if (Clock::now() > deadline)
            throw Failure("the copy is not caught up after " + std::to_string(kCatchUp.count()) +
                          " s");
    }
}

/* A table of the shard and of its copy, read several times while clients write. */
class Comparison
{
public:
    Comparison(Connection& publisher, Connection& follower, const std::string& table)
        : publisher_(publisher), follower_(follower), table_(table),
          sql_(parts_sql(publisher, table))
    {
    }

    /* A part that was the same before and after was so when the follower's was read. If clients
     * have written to it, the follower's may be the one before or the one after. */
    void read(const std::string& slot)
    {
        Parts before = read_parts(publisher_, table_, sql_);
        await_follower(publisher_, slot);
        Parts copy = read_parts(follower_, table_, sql_);
        Parts after = read_parts(publisher_, table_, sql_);
        std::set<std::int64_t> numbers;
        for (const Parts* parts : {&before, &copy, &after})
            for (const auto& part : *parts)
                numbers.insert(part.first);
        seen_ = numbers.size();
        std::map<std::int64_t, std::string> open;
        for (const std::int64_t i : numbers)
            /* For a number that one side lacks, operator[] adds a part with no row. */
            if (copy[i] == before[i] || copy[i] == after[i])
                equal_.insert(i);
            else if (equal_.count(i) == 0)
                /* "" if clients have written to the part: the copy may be right. */
                open[i] = before[i] == after[i] ? difference(before[i], copy[i]) : "";
        /* Clients may have changed a row and changed it back: a difference is found twice. */
        differences_.clear();
        for (const auto& [i, text] : open)
            if (!text.empty() && open_[i] == text)
                differences_[i] = text;
        open_ = open;
    }

    bool is_done() const { return open_.size() == differences_.size(); }

    /* The first difference, and how many more there are. */
    std::string difference() const
    {
        if (differences_.empty())
            return "";
        const std::size_t more = differences_.size() - 1;
        return differences_.begin()->second +
               (more > 0 ? "; and " + count_of(more, "more difference") : "");
    }

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
    std::string difference(const Part& here, const Part& there) const
    {
        return publisher_.server() + " has " + here.rows + ", " + follower_.server() + " has " +
               there.rows + (here.rows == there.rows ? ", which is not the same" : "");
    }

    Connection& publisher_;
    Connection& follower_;
    const std::string table_;
    const std::string sql_;
    std::size_t seen_ = 0;
    /* Parts that were equal at one try. They count as equal for good: all of
     * their rows had come then. */
    std::set<std::int64_t> equal_;
    std::map<std::int64_t, std::string> open_; /* with the difference if it may be one */
    std::map<std::int64_t, std::string> differences_;
};

} // namespace

FollowerRows compare_with_follower(Connection& publisher, Connection& follower, const Shard& shard,
                                   const std::string& slot)
{
    /* It sets row_security = off, so a policy that applies to the role is an error. Rows that are
     * hidden on one side would look like differences. */
    set_row_text(publisher);
    set_row_text(follower);
    FollowerRows found;
    for (const std::string& table : tables_of(publisher, shard)) {
        Comparison comparison(publisher, follower, table);
        comparison.read(slot);
        for (int i = 1; i < kTries && !comparison.is_done(); i++) {
            std::this_thread::sleep_for(kPause);
            comparison.read(slot);
        }
        if (const std::string text = comparison.difference(); !text.empty())
            found.differences.push_back("table " + table + ": " + text);
        if (const std::string text = comparison.unknown(); !text.empty())
            found.unknown.push_back("table " + table + ": " + text);
    }
    return found;
}
