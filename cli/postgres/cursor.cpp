#include "postgres/cursor.h"

#include <algorithm>
#include <utility>

namespace
{

constexpr std::size_t kBatch = 8 << 20; /* bytes */
constexpr std::size_t kFirst = 10;      /* rows whose width is not known yet */
constexpr std::size_t kMost = 1000;

} // namespace

Fetch fetch_from(const std::string& cursor)
{
    return [cursor](std::size_t count) {
        return "FETCH " + std::to_string(count) + " FROM " + cursor;
    };
}

/* The width of the last rows decides how many are fetched next, so that a FETCH has ended before
 * take() waits. If the rows are wider than those, the batch is passed on within the FETCH. A FETCH
 * that is full may be the last one: then the next returns no row. */
void read_cursor(Connection& connection, const Fetch& fetch, const std::vector<Column>& columns,
                 const std::function<void(std::vector<Row> rows)>& take)
{
    for (std::size_t wanted = kFirst;;) {
        std::vector<Row> rows;
        std::size_t size = 0; /* of these rows */
        std::size_t all = 0;  /* of the FETCH */
        std::size_t count = 0;
        connection.query_each(fetch(wanted), [&](const Result& row) {
            rows.push_back(row_of(row, 0, columns));
            const std::size_t width = size_of(rows.back());
            count++;
            all += width;
            size += width;
            if (size < kBatch)
                return;
            take(std::exchange(rows, {}));
            size = 0;
        });
        if (!rows.empty())
            take(std::move(rows));
        if (count < wanted)
            return;
        wanted = std::clamp(kBatch * count / std::max(all, std::size_t(1)), std::size_t(1), kMost);
    }
}
