#include "verbs/row_order.h"

#include <utility>

namespace
{

/* Bytes of rows that wait for their turn, of all shards. A bound, because a query may return more
 * than memory. */
constexpr std::size_t kMaxWaiting = 16 << 20;

} // namespace

/* The one whose turn it is never waits, so the others go on some time. Rows that are larger than
 * the bound by themselves wait for their turn, and are printed then. */
void RowOrder::add(std::size_t shard, std::vector<Row> rows)
{
    std::size_t size = 0;
    for (const Row& row : rows)
        size += size_of(row);
    std::unique_lock<std::mutex> lock(lock_);
    turn_.wait(lock, [&] { return shard == now_ || bytes_ + size <= kMaxWaiting; });
    Waiting& waiting = waiting_[shard];
    std::move(rows.begin(), rows.end(), std::back_inserter(waiting.rows));
    waiting.bytes += size;
    bytes_ += size;
    print_waiting();
}

void RowOrder::end(std::size_t shard)
{
    const std::lock_guard<std::mutex> lock(lock_);
    waiting_[shard].has_ended = true;
    print_waiting();
}

void RowOrder::print_waiting()
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
