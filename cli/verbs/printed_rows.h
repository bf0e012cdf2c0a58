/* The rows of all shards on the standard output, in the order of the shards. */

#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "verbs/row_order.h"
#include "verbs/row_sink.h"

class PrintedRows : public RowSink
{
public:
    /* shards: how many there are. has_heading: of CSV. */
    PrintedRows(std::size_t shards, Format format, bool has_heading);

    void begin(const Shard& shard, const std::vector<Column>& columns) override;
    void add(std::size_t place, std::vector<Row> rows) override;
    void end(std::size_t place) override;
    void finish(bool is_complete) override;

private:
    RowPrinter printer_;
    RowOrder order_;
    std::mutex lock_;
    std::optional<std::vector<std::string>> columns_;
};
