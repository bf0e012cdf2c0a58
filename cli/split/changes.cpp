#include "split/changes.h"

#include <algorithm>

#include "base/output.h"
#include "definition/fingerprint.h"
#include "fleet/records.h"

namespace
{

/* Reads the relfilenodes of the views, which REFRESH changes. REFRESH CONCURRENTLY does not. */
std::vector<std::string> read_views(Connection& connection, const Shards& shards)
{
    return texts_of(connection.query(R"(
        SELECT concat_ws(' ', relfilenode, oid::regclass)
        FROM pg_class
        WHERE relnamespace = ANY (ARRAY(SELECT to_regnamespace(s) FROM unnest($1::text[]) AS s)) AND relkind = 'm' AND relispopulated
        ORDER BY oid)",
                                     {schemas_of(shards)}));
}

Shards find_changed(Connection& old, Connection& promoted, const Shards& shards)
{
    const auto is_same = [&](const Shards& some) {
        return fingerprint_of(old, some, kSplitSchema) ==
               fingerprint_of(promoted, some, kSplitSchema);
    };
    if (is_same(shards))
        return {};
    Shards changed;
    for (const Shard& shard : shards)
        if (!is_same({shard}))
            changed.push_back(shard);
    return changed;
}

} // namespace

void see_promoted(Connection& promoted)
{
    promoted.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SELECT pg_current_snapshot()");
}

void try_to_tell(Connection& connection, const Shards& shards, const std::string& record)
{
    fingerprint_of(connection, shards, record);
    read_views(connection, shards);
}

std::string tell_of_changes(Connection& old, Connection& promoted, const Shards& shards)
{
    const bool is_seen = promoted.is_in_transaction();
    const Shards changed = find_changed(old, promoted, shards);
    const std::vector<std::string> views = read_views(old, shards);
    const std::vector<std::string> known = read_views(promoted, shards);
    std::string refreshed;
    for (const std::string& view : views)
        if (std::find(known.begin(), known.end(), view) == known.end())
            refreshed += " REFRESH MATERIALIZED VIEW " + view.substr(view.find(' ') + 1) + ";";
    if (is_seen)
        promoted.rollback();
    if (!refreshed.empty())
        warn(old.server() + ": materialized views were refreshed since the promotion. On " +
             promoted.server() + ":" + visible(refreshed));
    if (changed.empty())
        return "";
    warn(is_seen ? old.server() + ": the definition of " + title_of(changed) +
                       " has been changed since it was closed. The change is not on " +
                       promoted.server() + ".\nHINT:  Make it there, too."
                 : "the definitions of " + title_of(changed) + " on " + old.server() + " and " +
                       promoted.server() +
                       " differ: one of them was changed since the promotion.\nHINT:  If it was "
                       "that of " +
                       old.server() + ", make the change on " + promoted.server() + ", too.");
    return is_seen ? ", changed after it was closed" : ", definitions differ";
}
