#include "replication/comparison.h"

#include <future>
#include <thread>

#include "base/interrupt.h"
#include "base/output.h"
#include "base/timeouts.h"
#include "postgres/row_text.h"
#include "replication/digests.h"
#include "replication/parts.h"
#include "replication/publication.h"
#include "replication/rows.h"
#include "replication/slots.h"

using namespace std::chrono_literals;

namespace
{

/* A commit with synchronous_commit = off is visible before its WAL is written, and so before the
 * position that the follower is awaited at. The WAL writer writes it within three times
 * wal_writer_delay, 600 ms by default, and so before the next try. */
constexpr auto kPause = 1s;
constexpr int kTries = 3;
constexpr int kNarrowTries = 6;

using Digests = std::vector<Digest>;

std::future<Digests> start_reading(Connection& connection, const SizedTables& tables)
{
    return std::async(std::launch::async,
                      [&connection, tables] { return read_digests(connection, tables); });
}

/* Both servers work at the same time. */
std::vector<bool> are_equal(Connection& one, Connection& other, const SizedTables& tables)
{
    std::future<Digests> reading = start_reading(other, tables);
    const Digests here = read_digests(one, tables);
    const Digests there = reading.get();
    std::vector<bool> equal;
    for (std::size_t i = 0; i < tables.size(); i++)
        equal.push_back(here[i].proves_equal(there[i]));
    return equal;
}

/* The comparison of a publisher with its follower. */
class Following
{
public:
    Following(Connection& publisher, Connection& follower, const std::string& slot,
              const Note& note)
        : publisher_(publisher), follower_(follower), slot_(slot), note_(note)
    {
    }

    FollowerRows compare(const SizedTables& tables)
    {
        Progress progress("compare (tables)", tables.size());
        /* Tables that differ may have been written to between the two readings. They are fewer each
         * time, so less time is between. Only the comparison of parts can find a difference. */
        SizedTables others = tables;
        for (int i = 0; i < kTries && !others.empty(); i++)
            others = compare_digests(batches_of(others), progress);
        for (const SizedTable& table : others) {
            compare_parts_of(table);
            progress.step();
        }
        return found_;
    }

private:
    /* Returns the tables whose digests differ. The publisher is read first, so that the follower
     * has all rows that were read there. It is read for the next batch while the follower is read
     * for this one. */
    SizedTables compare_digests(const std::vector<SizedTables>& batches, Progress& progress)
    {
        SizedTables others;
        std::future<Digests> reading;
        for (std::size_t i = 0; i < batches.size(); i++) {
            const Digests here = i == 0 ? read_digests(publisher_, batches[0]) : reading.get();
            await_follower(publisher_, follower_, slot_, timeouts::kCatchUp);
            if (i + 1 < batches.size())
                reading = start_reading(publisher_, batches[i + 1]);
            const Digests there = read_digests(follower_, batches[i]);
            std::vector<std::string> equal;
            for (std::size_t n = 0; n < batches[i].size(); n++)
                if (here[n].proves_equal(there[n])) {
                    add(batches[i][n], there[n].rows);
                    equal.push_back(batches[i][n].name);
                    progress.step();
                } else {
                    others.push_back(batches[i][n]);
                }
            tell(equal);
        }
        return others;
    }

    /* Goes on while clearly fewer parts are left at each try. */
    void compare_parts_of(const SizedTable& table)
    try {
        Comparison comparison(publisher_, follower_, table.name);
        comparison.read(slot_);
        double open = std::numeric_limits<double>::max();
        for (int i = 1; !comparison.is_done(); i++) {
            const bool is_narrow = comparison.narrow();
            const auto left = static_cast<double>(comparison.open());
            if (i >= (is_narrow ? kNarrowTries : kTries)) {
                if (left > 0.9 * open)
                    break;
                warn(visible("table " + table.name + ": " + comparison.unknown()) +
                     ". It is tried again");
            }
            open = left;
            stop_if_interrupted();
            std::this_thread::sleep_for(kPause);
            comparison.read(slot_);
            if (is_narrow && !comparison.is_done())
                comparison.sample();
        }
        add(table, comparison.rows());
        const std::string difference = comparison.difference_found();
        const std::string unknown = comparison.unknown();
        if (!difference.empty())
            found_.differences.push_back("table " + table.name + ": " + difference);
        if (!unknown.empty())
            found_.unknown.push_back("table " + table.name + ": " + unknown);
        if (difference.empty() && unknown.empty())
            tell({table.name});
    } catch (const ServerError& error) {
        found_.unknown.push_back("table " + table.name + ": " + why_unread(error));
    }

    void add(const SizedTable& table, std::uint64_t rows)
    {
        found_.rows += rows;
        found_.bytes += table.bytes;
    }

    void tell(const std::vector<std::string>& equal) const
    {
        if (note_ && !equal.empty())
            note_(equal);
    }

    Connection& publisher_;
    Connection& follower_;
    const std::string& slot_;
    const Note& note_;
    FollowerRows found_;
};

/* The tables up to the size, and the others. */
std::pair<SizedTables, SizedTables> divided(const SizedTables& tables, std::uint64_t max_size)
{
    std::pair<SizedTables, SizedTables> divided;
    for (const SizedTable& table : tables)
        (table.bytes <= max_size ? divided.first : divided.second).push_back(table);
    return divided;
}

} // namespace

std::string compare_table(Connection& one, Connection& other, const std::string& table)
{
    set_row_text(one);
    set_row_text(other);
    if (are_equal(one, other, {{table}}).front())
        return "";
    try {
        return compare_parts(one, other, table, false);
    } catch (const ServerError& error) {
        return why_unread(error);
    }
}

namespace
{

/* Another session reads the parts. It must not wait for one that waits for these locks. */
std::vector<bool> are_equal_unlocked(Connection& source, Connection& snapshot,
                                     const SizedTables& tables)
{
    snapshot.run("SAVEPOINT digests");
    std::vector<bool> equal = are_equal(source, snapshot, tables);
    snapshot.run("ROLLBACK TO digests; RELEASE digests");
    return equal;
}

/* TRUNCATE and ALTER TABLE make the rows of a table invisible in the snapshot. */
bool has_rows_of(Connection& snapshot, const std::string& table)
{
    const bool is_rewritten = !find_rewritten(snapshot, sql_array({table})).empty();
    if (is_rewritten)
        warn(snapshot.server() + ": table " + visible(table) +
             " was emptied or rewritten after the opening, and is not compared");
    return !is_rewritten;
}

} // namespace

/* The source needs no snapshot, because it is fenced. Clients write to the target by now, so its
 * rows are read in the snapshot of the opening. */
std::vector<std::string> compare_rows(Connection& source, Connection& snapshot,
                                      const Shards& shards, std::uint64_t max_size)
{
    set_row_text(source);
    set_row_text(snapshot);
    const auto [compared, counted] =
        divided(with_sizes(source, tables_of(source, shards)), max_size);
    Progress progress("compare (tables)", compared.size() + counted.size());
    std::vector<std::string> found;
    bool is_readable = true; /* an error ends the transaction, and so the snapshot */
    const auto compare = [&](const std::string& table, bool is_counted) {
        std::string text;
        try {
            text = compare_parts(source, snapshot, table, is_counted);
        } catch (const ServerError& error) {
            is_readable = false;
            found.push_back("table " + table + ": " + why_unread(error) +
                            "\nTables after it are not compared");
        }
        if (!text.empty() && has_rows_of(snapshot, table))
            found.push_back("table " + table + ": " + text);
    };
    for (const SizedTables& batch : batches_of(compared)) {
        if (!is_readable)
            break;
        const std::vector<bool> equal = are_equal_unlocked(source, snapshot, batch);
        for (std::size_t i = 0; i < batch.size(); i++) {
            if (!equal[i] && is_readable)
                compare(batch[i].name, false);
            progress.step();
        }
    }
    for (const SizedTable& table : counted) {
        if (is_readable)
            compare(table.name, true);
        progress.step();
    }
    snapshot.run("COMMIT");
    return found;
}

FollowerRows compare_with_follower(Connection& publisher, Connection& follower,
                                   const std::vector<std::string>& tables, const std::string& slot,
                                   std::uint64_t max_size, const Note& note)
{
    set_row_text(publisher);
    set_row_text(follower);
    const SizedTables compared = divided(with_sizes(publisher, tables), max_size).first;
    return Following(publisher, follower, slot, note).compare(compared);
}
