/* The rows of all shards on the standard output, in the order of the shards. */

#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/table.h"
#include "verbs/row_sink.h"

/* Puts the rows of shards that are asked at the same time into the order of the shards. Threads add
 * them; those of the shard whose turn it is are printed at once, and a thread that is too far ahead
 * waits. That needs two things of the caller, or the waits would not end: each server's shards are
 * taken in this order, so that the shard whose turn it is has a thread, or gets the next one that
 * is free; and end() is called for each shard, also after an error. */
class PrintedRows : public RowSink
{
public:
    /* shards: how many there are. has_heading: of CSV. */
    PrintedRows(std::size_t shards, Format format, bool has_heading)
        : printer_(format, has_heading), waiting_(shards)
    {
    }

    void begin(const Shard& shard, const std::vector<Column>& columns) override;
    void add(std::size_t place, std::vector<Row> rows) override;
    void end(std::size_t place) override;
    void finish(bool is_complete) override;

private:
    struct Waiting {
        std::vector<Row> rows;
        std::size_t bytes = 0;
        bool has_ended = false;
    };

    void print_waiting();

    RowPrinter printer_;
    std::mutex lock_;
    std::optional<std::vector<std::string>> columns_;
    std::condition_variable turn_;
    std::vector<Waiting> waiting_;
    std::size_t now_ = 0; /* whose turn it is */
    std::size_t bytes_ = 0;
};
