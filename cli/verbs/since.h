/* query --since FILE: up to which ID the rows of each shard were read, and up to which they can be
 * read now. */

#pragma once

#include <map>
#include <mutex>
#include <string>

#include "base/files.h"
#include "base/shards.h"
#include "postgres/connection.h"

/* The sequence of a shard's function, with the arguments of snowflake_settled_id(). */
struct Source {
    std::string sequence; /* an OID */
    std::string epoch;
    std::string problem; /* why there is no such sequence; empty if there is */
};

/* By the OID of the schema. */
std::map<std::string, Source> read_sources(Connection& connection);

/* The rows of one run are those of the IDs after first, up to last. */
struct Span {
    std::int64_t first;
    std::int64_t last;
};

class Since
{
public:
    /* The file has a line of JSON for each shard. If it is missing, all shards begin at 0.
     * UsageError if a line cannot be read. timeout: seconds. */
    Since(std::string file, double timeout);

    /* The file was missing or empty: CSV has its heading once, because each run is appended. */
    bool is_first() const { return read_.empty(); }
    /* Before the rows: ends the line that a killed run has left in the file that this appends to.
     */
    static void begin_output();
    /* In a transaction of its own. A Failure if transactions that have drawn do not end in time. */
    Span settle(Connection& connection, const Shard& shard, const Source& source) const;
    /* The rows of the shard are printed, but for those that the caller has not flushed. */
    void note(const Shard& shard, const Span& span);
    /* Replaces the file in one step, when the rows are on the disk of the standard output. */
    void save();

private:
    const KeptFile file_;
    const double timeout_;
    std::map<int, std::int64_t> read_;
    std::map<int, std::int64_t> noted_;
    std::mutex noting_;
};
