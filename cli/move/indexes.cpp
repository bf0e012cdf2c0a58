#include "move/indexes.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <set>

#include "base/interrupt.h"
#include "postgres/advisory.h"
#include "postgres/parallel.h"
#include "postgres/restore.h"
#include "postgres/settings.h"

namespace
{

/* From 1 MB on: a smaller one takes no longer than a session and the pg_restore that writes its
 * statement. */
const char* const kLarge = R"(
    SELECT tableoid, oid, pg_get_indexdef(oid) FROM pg_class, pg_relation_size(oid) AS size
    WHERE relnamespace = $1::regnamespace AND relkind = 'i' AND size >= 1 << 20 ORDER BY size DESC, oid)";

/* The first error ends the work of the other sessions. */
class FirstError
{
public:
    void note()
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (!error_)
            error_ = std::current_exception();
        is_there_ = true;
    }
    bool is_there() const { return is_there_; }
    void raise() const
    {
        if (error_)
            std::rethrow_exception(error_);
    }

private:
    std::mutex mutex_;
    std::exception_ptr error_;
    std::atomic<bool> is_there_ = false;
};

} // namespace

std::vector<Archive::Item> take_large_indexes(Servers& servers, const Shard& shard,
                                              std::vector<Archive::Item>& items)
{
    /* Those that an interrupted command has built. One of the same name that is another is an error
     * when this is made. */
    const std::vector<std::string> found_there = texts_of(servers.target.query(R"(
        SELECT pg_get_indexdef(indexrelid) FROM pg_index JOIN pg_class AS c ON c.oid = indexrelid
        WHERE relnamespace = $1::regnamespace AND indisvalid)",
                                                                               {shard.quoted}));
    const std::set<std::string> built(found_there.begin(), found_there.end());
    const Result rows = servers.source.query(kLarge, {shard.quoted});
    std::vector<Archive::Item> large;
    for (int i = 0; i < rows.rows(); i++) {
        const auto found = std::find_if(items.begin(), items.end(), [&](const auto& item) {
            return item.catalog == rows.number(i, 0) && item.object == rows.number(i, 1);
        });
        if (found == items.end()) /* a key, which was made before the rows */
            continue;
        if (built.count(rows.text(i, 2)) == 0)
            large.push_back(*found);
        items.erase(found);
    }
    return large;
}

/* The sessions of a command that was killed end within a second: lock_by_name() waits for them. An
 * index that one of them has just built is an error of this command, and is found by the next. */
void build_indexes(Connection& target, const Move& move, const std::vector<std::string>& statements,
                   const std::string& sole_owner, int sessions)
{
    std::atomic<std::size_t> next = 0;
    FirstError error;
    const auto check = [&] {
        stop_if_interrupted();
        if (error.is_there())
            throw Failure("another index was not built");
    };
    const auto build = [&](std::size_t session) {
        Connection builder(target.dsn_of_server());
        withstand_settings(builder);
        const Watch watch(builder, check);
        lock_by_name(builder, move.name + "_index_" + std::to_string(session),
                     "building an index of the shard");
        for (std::size_t i = next++; i < statements.size(); i = next++) {
            builder.run("BEGIN");
            restore(builder, statements[i], sole_owner);
            builder.run("COMMIT");
        }
    };
    at_once(std::min(statements.size(), static_cast<std::size_t>(sessions)), [&](std::size_t i) {
        try {
            build(i);
        } catch (...) {
            error.note();
        }
        return true;
    });
    error.raise();
}
