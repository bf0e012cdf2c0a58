#include "move/sets.h"

#include <algorithm>
#include <map>

#include "fleet/sizes.h"
#include "postgres/connection.h"
#include "postgres/settings.h"

namespace
{

/* A schema on its source. */
struct Size {
    std::string owner;
    std::int64_t bytes = 0;
};
using Sizes = std::map<std::string, Size>; /* by the OID */

Sizes read_sizes(Connection& source, const std::vector<std::string>& schemas)
{
    withstand_settings(source);
    const Result rows = source.query("SELECT oid, nspowner, coalesce(size, 0) FROM pg_namespace "
                                     "LEFT JOIN (" +
                                         sizes_sql("$1::oid[]") +
                                         ") AS s ON schema = oid WHERE oid = ANY ($1::oid[])",
                                     {sql_array(schemas)});
    Sizes sizes;
    for (int i = 0; i < rows.rows(); i++)
        sizes[rows.text(i, 0)] = {rows.text(i, 1), rows.number(i, 2)};
    return sizes;
}

/* The sizes by database. */
std::map<std::string, Sizes> read_all_sizes(const std::vector<ListedMove>& moves)
{
    std::map<std::string, std::pair<std::string, std::vector<std::string>>> wanted;
    for (const ListedMove& move : moves)
        if (move.record.empty() && !move.oid.empty()) {
            auto& [dsn, schemas] = wanted[move.source];
            dsn = move.entry.from;
            schemas.push_back(move.oid);
        }
    std::map<std::string, Sizes> sizes;
    for (const auto& [source, one] : wanted) {
        Connection connection(one.first);
        sizes[source] = read_sizes(connection, one.second);
    }
    return sizes;
}

/* Moves with another key are never in one set. */
std::string key_of(const ListedMove& move, const std::string& owner)
{
    return move.source + "\n" + move.target + "\n" + move.end_state + "\n" +
           (move.record.empty() ? "owner " + owner : format_shards(move.record));
}

} // namespace

std::vector<ListedSet> sets_of(const std::vector<ListedMove>& moves, const MoveOptions& options,
                               bool begins)
{
    std::map<std::string, Sizes> sizes;
    if (begins && moves.size() > 1)
        sizes = read_all_sizes(moves);
    const auto has_room = [&](const ListedSet& set, const Size& size) {
        return begins && set.shards.size() < static_cast<std::size_t>(options.together) &&
               set.bytes + size.bytes <= static_cast<std::int64_t>(options.together_size);
    };
    std::vector<ListedSet> sets;
    std::map<std::string, std::size_t> last; /* by key */
    for (const ListedMove& move : moves) {
        const Size size = sizes[move.source][move.oid];
        const auto [place, is_new] = last.try_emplace(key_of(move, size.owner), sets.size());
        /* Without a record, moves that are to be ended are no set. */
        if (!is_new && move.record.empty() && !has_room(sets[place->second], size))
            place->second = sets.size();
        if (place->second == sets.size())
            sets.push_back(
                {{}, move.entry.from, move.entry.to, move.source, move.target, move.end_state, 0});
        ListedSet& set = sets[place->second];
        set.bytes += size.bytes;
        set.shards.push_back({move.entry.number, move.entry.schema});
    }
    for (ListedSet& set : sets)
        std::sort(set.shards.begin(), set.shards.end(),
                  [](const Shard& one, const Shard& two) { return one.number < two.number; });
    return sets;
}
