#include "verbs/printed_rows.h"

#include <algorithm>
#include <utility>

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

/* Without a shard there is a table without rows. Where no shard could answer, there is none. */
void PrintedRows::finish(bool is_complete)
{
    if (!columns_ && !is_complete)
        return;
    if (!columns_)
        printer_.begin(kShardColumns);
    printer_.end();
}

namespace
{

/* Bytes of rows that wait for their turn, of all shards. A bound, because a query may return more
 * than memory. */
constexpr std::size_t kMaxWaiting = 16 << 20;

} // namespace

/* The one whose turn it is never waits, so the others go on some time. Rows that are larger than
 * the bound by themselves wait for their turn, and are printed then. */
void PrintedRows::add(std::size_t place, std::vector<Row> rows)
{
    std::size_t size = 0;
    for (const Row& row : rows)
        size += size_of(row);
    std::unique_lock<std::mutex> lock(lock_);
    turn_.wait(lock, [&] { return place == now_ || bytes_ + size <= kMaxWaiting; });
    Waiting& waiting = waiting_[place];
    std::move(rows.begin(), rows.end(), std::back_inserter(waiting.rows));
    waiting.bytes += size;
    bytes_ += size;
    print_waiting();
}

void PrintedRows::end(std::size_t place)
{
    const std::lock_guard<std::mutex> lock(lock_);
    waiting_[place].has_ended = true;
    print_waiting();
}

void PrintedRows::print_waiting()
{
    for (; now_ < waiting_.size(); now_++) {
        Waiting& waiting = waiting_[now_];
        for (const Row& row : waiting.rows)
            printer_.print(row);
        bytes_ -= std::exchange(waiting.bytes, 0);
        waiting.rows = {};
        if (!waiting.has_ended)
            break;
    }
    /* All: one of them may have got its turn, and others may have room now. */
    turn_.notify_all();
}
