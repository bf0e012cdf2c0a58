#include "verbs/printed_rows.h"

#include <algorithm>

std::vector<std::string> names_behind(std::vector<std::string> names,
                                      const std::vector<Column>& columns)
{
    for (const Column& column : columns) {
        std::string name = column.name;
        for (int n = 2; std::find(names.begin(), names.end(), name) != names.end(); n++)
            name = column.name + "_" + std::to_string(n);
        names.push_back(name);
    }
    return names;
}

PrintedRows::PrintedRows(std::size_t shards, Format format, bool has_heading)
    : printer_(format, has_heading), order_(shards, printer_)
{
}

/* All shards have the columns of the first that has answered, by their names. A shard without rows
 * has columns, too, so the heading does not depend on the rows. */
void PrintedRows::begin(const Shard&, const std::vector<Column>& columns)
{
    const std::vector<std::string> names = names_behind(kShardColumns, columns);
    const std::lock_guard<std::mutex> lock(lock_);
    if (!columns_) {
        columns_ = names;
        printer_.begin(names);
    }
    if (*columns_ != names)
        throw Failure("the columns of the query differ from those of the other shards");
}

void PrintedRows::add(std::size_t place, std::vector<Row> rows)
{
    order_.add(place, std::move(rows));
}

void PrintedRows::end(std::size_t place)
{
    order_.end(place);
}

/* Without a shard there is a table without rows. Where no shard could answer, there is none. */
void PrintedRows::finish(bool is_complete)
{
    if (!columns_ && !is_complete)
        return;
    if (!columns_)
        printer_.begin(kShardColumns);
    printer_.end();
}
