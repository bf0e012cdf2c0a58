#include "move/indexes.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "base/interrupt.h"
#include "move/fingerprint.h"
#include "postgres/advisory.h"
#include "postgres/parallel.h"
#include "postgres/restore.h"
#include "postgres/settings.h"

namespace
{

/* A constraint has its OID in pg_constraint in the archive. An index without one, which can be a
 * replica identity, has that in pg_class, and pg_dump writes REPLICA IDENTITY USING INDEX into the
 * same entry. The key of a partition is attached to that of its table, so neither waits. From 8 MB
 * on: below, the session and the pg_restore that it takes are no gain. */
const char* const kKeys = R"(
    SELECT k.catalog, k.oid, t.oid::regclass, k.name,
           t.relkind = 'r' AND NOT t.relispartition AND pg_relation_size(t.oid) >= 8 << 20
    FROM (SELECT tableoid AS catalog, oid, conrelid AS relid, conname AS name FROM pg_constraint
          WHERE connamespace = ANY ($1::regnamespace[]) AND contype IN ('p', 'u', 'x')
          UNION ALL
          SELECT c.tableoid, c.oid, indrelid, relname FROM pg_index JOIN pg_class AS c ON c.oid = indexrelid
          WHERE relnamespace = ANY ($1::regnamespace[]) AND indisreplident) AS k JOIN pg_class AS t ON t.oid = relid)";

struct Key {
    /* A catalogue and an object, because an OID is unique in its catalogue only. */
    std::pair<std::uint32_t, std::uint32_t> object;
    std::string table;
    std::string name;
    bool is_of_large_table;
};

std::vector<Key> find_keys(Connection& connection, const Move& move)
{
    const Result rows = connection.query(kKeys, {move.schemas()});
    std::vector<Key> keys;
    for (int i = 0; i < rows.rows(); i++)
        keys.push_back({{rows.number(i, 0), rows.number(i, 1)},
                        rows.text(i, 2),
                        rows.text(i, 3),
                        rows.flag(i, 4)});
    return keys;
}

/* Those of the archive's items after the rows for which choose(), given their key or null, is
 * true. */
template <typename Choice>
std::vector<Archive::Item> choose_items(const std::vector<Key>& keys, const Archive& archive,
                                        const Choice& choose)
{
    std::vector<Archive::Item> items;
    for (const Archive::Item& item : archive.items(Archive::Section::post_data)) {
        const auto key = std::find_if(keys.begin(), keys.end(), [&](const Key& k) {
            return k.object == std::pair(item.catalog, item.object);
        });
        if (choose(key == keys.end() ? nullptr : &*key))
            items.push_back(item);
    }
    return items;
}

/* From 1 MB on: a smaller one takes no longer than a session and the pg_restore that writes its
 * statement. */
const char* const kLarge = R"(
    SELECT tableoid, oid, pg_get_indexdef(oid) FROM pg_class, pg_relation_size(oid) AS size
    WHERE relnamespace = ANY ($1::regnamespace[]) AND relkind = 'i' AND size >= 1 << 20 ORDER BY size DESC, oid)";

} // namespace

std::vector<Archive::Item> keys_before_rows(Connection& source, const Move& move,
                                            const Archive& archive)
{
    return choose_items(find_keys(source, move), archive,
                        [](const Key* key) { return key && !key->is_of_large_table; });
}

std::vector<Archive::Item> all_but_keys(Connection& source, const Move& move,
                                        const Archive& archive)
{
    return choose_items(find_keys(source, move), archive, [](const Key* key) { return !key; });
}

/* The archive is made anew, because the one of prepare_target() can be that of a killed command. */
KeysBehindRows::KeysBehindRows(Servers& servers, const Move& move, int jobs)
    : servers_(servers), move_(move), jobs_(static_cast<std::size_t>(jobs))
{
    std::set<std::pair<std::string, std::string>> built;
    for (const Key& key : find_keys(servers.target, move))
        built.emplace(key.table, key.name);
    std::vector<Key> keys;
    for (const Key& key : find_keys(servers.source, move))
        if (built.count({key.table, key.name}) == 0)
            keys.push_back(key);
    if (keys.empty())
        return;
    sole_owner_ = ::sole_owner(servers.source, move.shards);
    const Archive archive = archive_of(servers.source, move);
    for (const Key& key : keys)
        if (const auto [missing, is_new] = missing_.try_emplace(key.table); is_new)
            missing->second = {key.name, archive.sql(choose_items(keys, archive, [&](const Key* k) {
                                   return k && k->table == key.table;
                               }))};
    require_same_definition(servers.source, move, archive);
}

/* Without its key a table cannot follow the stream: an UPDATE that the worker receives is an error,
 * which it repeats every 5 s. So the lock is asked for while the worker copies (d), and had when
 * the copy is committed, before the worker goes on with the stream (LogicalRepSyncTableStart()
 * holds ROW EXCLUSIVE until that commit). The lock lets others read. */
bool KeysBehindRows::are_built()
{
    const auto end = std::remove_if(running_.begin(), running_.end(), [](auto& future) {
        const bool has_ended =
            future.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
        if (has_ended)
            future.get();
        return has_ended;
    });
    running_.erase(end, running_.end());
    if (missing_.empty())
        return running_.empty();
    const Result rows = servers_.target.query(R"(
        SELECT srrelid::regclass, srsubstate FROM pg_subscription_rel JOIN pg_subscription AS s ON s.oid = srsubid
        WHERE subname = $1 AND srsubstate <> 'i')",
                                              {move_.name});
    for (int i = 0; i < rows.rows(); i++) {
        const auto table = missing_.find(rows.text(i, 0));
        if (table == missing_.end() || (rows.text(i, 1) != "d" && running_.size() >= jobs_))
            continue;
        running_.push_back(std::async(
            std::launch::async, [this, entry = *table] { build(entry.first, entry.second); }));
        missing_.erase(table);
    }
    return false;
}

/* A copy that has failed is begun again, and then the lock is had too early. A session of a killed
 * command may have made the keys while this one waited for the lock: all keys of a table are made
 * in one transaction. */
void KeysBehindRows::build(const std::string& table, const Keys& keys)
{
    Connection builder(servers_.target.dsn_of_server());
    withstand_settings(builder);
    const auto check = [this] {
        stop_if_interrupted();
        if (is_given_up_)
            throw Failure("the copy has been given up");
    };
    const Watch watch(builder, check);
    for (;; std::this_thread::sleep_for(std::chrono::milliseconds(20))) {
        check();
        builder.run("BEGIN; LOCK TABLE ONLY " + table + " IN SHARE ROW EXCLUSIVE MODE");
        const bool is_copied = builder
                                   .query(R"(
                    SELECT FROM pg_subscription_rel JOIN pg_subscription AS s ON s.oid = srsubid
                    WHERE subname = $1 AND srrelid = $2::regclass AND srsubstate NOT IN ('i', 'd'))",
                                          {move_.name, table})
                                   .rows() > 0;
        const std::vector<Key> there = find_keys(builder, move_);
        const bool are_made = std::any_of(there.begin(), there.end(), [&](const Key& key) {
            return key.table == table && key.name == keys.name;
        });
        if (is_copied && !are_made)
            restore(builder, keys.statements, sole_owner_);
        builder.run("COMMIT");
        if (is_copied)
            return;
    }
}

std::vector<Archive::Item> take_large_indexes(Servers& servers, const Move& move,
                                              std::vector<Archive::Item>& items)
{
    /* Those that an interrupted command has built. One of the same name that is another is an error
     * when this is made. */
    const std::vector<std::string> found_there = texts_of(servers.target.query(R"(
        SELECT pg_get_indexdef(indexrelid) FROM pg_index JOIN pg_class AS c ON c.oid = indexrelid
        WHERE relnamespace = ANY ($1::regnamespace[]) AND indisvalid)",
                                                                               {move.schemas()}));
    const std::set<std::string> built(found_there.begin(), found_there.end());
    const Result rows = servers.source.query(kLarge, {move.schemas()});
    std::vector<Archive::Item> large;
    for (int i = 0; i < rows.rows(); i++) {
        const auto found = std::find_if(items.begin(), items.end(), [&](const auto& item) {
            return item.catalog == rows.number(i, 0) && item.object == rows.number(i, 1);
        });
        if (found == items.end()) /* a key, which has been made */
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
    /* It ends the work of the other sessions. */
    std::exception_ptr first_error;
    std::mutex mutex;
    const auto check = [&] {
        stop_if_interrupted();
        const std::lock_guard<std::mutex> lock(mutex);
        if (first_error)
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
            const std::lock_guard<std::mutex> lock(mutex);
            if (!first_error)
                first_error = std::current_exception();
        }
        return true;
    });
    if (first_error)
        std::rethrow_exception(first_error);
}
