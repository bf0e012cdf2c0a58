/* The rows of tables by the SQL of a server, which also names those that differ. */

#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "postgres/connection.h"
#include "postgres/row_text.h"

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

/* Why rows cannot be compared, if the error is of a right or policy; else throws it. */
std::string why_unread(const ServerError& error);

/* Compares like compare_table(). The caller has called set_row_text() for both. */
std::string compare_parts(Connection& one, Connection& other, const std::string& table,
                          bool is_counted);

/* A table of the shard and of its copy, read several times while clients write. A part is open
 * until it was equal at one try, or its difference was found at two. */
class Comparison
{
public:
    Comparison(Connection& publisher, Connection& follower, const std::string& table);

    /* A part without a write between before and after was the same when the follower's was read. If
     * clients have written to it, the follower's may be any of those in between. */
    void read(const std::string& slot);
    /* From now on, only the rows that the open parts have now are read, by their keys. That takes
     * milliseconds, in which few rows are written to. False if they are too many, or have no key.
     */
    bool narrow();
    /* Reads both servers often at the same time: each state of a row that is written to all the
     * time passes through the follower a moment later, so that some are seen on both. */
    void sample();

    std::uint64_t rows() const { return rows_; } /* of the follower */
    std::size_t open() const { return open_.size(); }
    bool is_done() const { return open_.size() == differences_.size(); }
    std::string difference_found() const;
    std::string unknown() const;

private:
    std::string keys_of_open(Connection& server, const KeyColumns& key) const;
    std::string file() const;

    Connection& publisher_;
    Connection& follower_;
    const std::string table_;
    std::string sql_;
    bool is_narrow_ = false;
    int tries_ = 0;
    int rewrites_ = 0; /* tries in which the table got another file */
    std::size_t seen_ = 0;
    std::uint64_t rows_ = 0;
    std::uint64_t open_rows_ = 0;
    /* Parts that were equal at one try. They count as equal for good: all of
     * their rows had come then. */
    std::set<std::int64_t> equal_;
    std::map<std::int64_t, std::string> open_; /* with the difference if it may be one */
    std::map<std::int64_t, std::string> differences_;
    std::string written_to_; /* the rows of an open part */
};
