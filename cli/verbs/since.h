/* query --since FILE: up to which ID the rows of each shard were read, and up to which they can be
 * read now. */

#pragma once

#include <map>
#include <mutex>
#include <string>

#include "base/appended.h"
#include "base/files.h"
#include "verbs/settle.h"

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
    /* Before the rows. Where the output is a file that runs append to, the rows of a run that was
     * ended are cut off; in another one, the last line gets an end. */
    void begin_output();
    /* In transactions of its own. A Failure if transactions that have drawn do not end in time, or
     * if the file is ahead of the shard. */
    Span settle(Connection& connection, const Shard& shard, const Source& source) const;
    /* Before rows of the shard are printed. */
    void begin_rows(const Shard& shard);
    /* The rows of the shard are printed, but for those that the caller has not flushed. */
    void note(const Shard& shard, const Span& span);
    /* Replaces the file in one step, when the rows are on the disk of the standard output. If a
     * shard has failed among its rows, this leaves all to the next run, which cuts them off. */
    void save();

private:
    void write(const Appended& output);

    KeptFile file_;
    const double timeout_;
    Appended interrupted_ = {}; /* of the run before, if it was ended; read_ is read with it */
    std::map<int, std::int64_t> read_;
    std::map<int, std::int64_t> noted_;
    ShardSet begun_; /* shards with rows that are not all printed */
    Appended output_ = {};
    std::mutex noting_;
};
