#include "move/indexes.h"

#include <algorithm>
#include <atomic>

#include "base/output.h"
#include "postgres/parallel.h"
#include "postgres/settings.h"
#include "replication/owners.h"

namespace
{

/* Indexes of 1 MB and more: a smaller one takes no longer than a session and the pg_restore that
 * writes its statement. The archive has a key by its constraint. The largest one of each table is
 * first: ADD CONSTRAINT and CREATE INDEX of the same table wait for each other. */
const char* const kLarge = R"(
    SELECT coalesce(k.tableoid, c.tableoid), coalesce(k.oid, c.oid)
    FROM pg_class AS c JOIN pg_index ON indexrelid = c.oid
    LEFT JOIN pg_constraint AS k ON conindid = c.oid AND contype IN ('p', 'u', 'x'),
         pg_relation_size(c.oid) AS size
    WHERE relnamespace = ANY ($1::regnamespace[]) AND relkind = 'i' AND size >= 1 << 20
    ORDER BY row_number() OVER (PARTITION BY indrelid ORDER BY size DESC, c.oid), size DESC, c.oid)";

} // namespace

std::vector<Archive::Item> take_large_indexes(Connection& source, const Move& move,
                                              std::vector<Archive::Item>& items)
{
    const Result rows = source.query(kLarge, {move.schemas()});
    std::vector<Archive::Item> large;
    for (int i = 0; i < rows.rows(); i++) {
        const auto found = std::find_if(items.begin(), items.end(), [&](const auto& item) {
            return item.catalog == rows.number(i, 0) && item.object == rows.number(i, 1);
        });
        if (found == items.end()) /* made since, which is found later */
            continue;
        large.push_back(*found);
        items.erase(found);
    }
    return large;
}

void build_indexes(Connection& target, const Archive& archive,
                   const std::vector<Archive::Item>& indexes, int connections)
{
    Progress progress("indexes", indexes.size());
    std::atomic<std::size_t> next = 0;
    const std::size_t count = std::min(indexes.size(), static_cast<std::size_t>(connections));
    all_or_none(count, [&](std::size_t, const auto& check) {
        Connection builder(target.dsn_of_server());
        withstand_settings(builder);
        const Watch watch(builder, check);
        for (std::size_t i = next++; i < indexes.size(); i = next++, progress.step())
            make_items(builder, archive, {indexes[i]});
    });
}
