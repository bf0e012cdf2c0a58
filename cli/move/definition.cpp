#include "move/definition.h"

#include <cstdint>
#include <set>

namespace
{

/* A catalogue and an object, because an OID is unique in its catalogue only. */
using Keys = std::set<std::pair<std::uint32_t, std::uint32_t>>;

/* Primary keys, unique and exclusion constraints, and replica identities. The entry of a constraint
 * in the archive has its OID in pg_constraint. An index without one, which can be a replica
 * identity, has that in pg_class. pg_dump writes REPLICA IDENTITY USING INDEX into the same
 * entry. */
Keys find_keys(Connection& source, const Shard& shard)
{
    const Result rows = source.query(R"(
        SELECT tableoid, oid FROM pg_constraint
        WHERE connamespace = $1::regnamespace AND contype IN ('p', 'u', 'x')
        UNION ALL
        SELECT c.tableoid, c.oid FROM pg_index JOIN pg_class AS c ON c.oid = indexrelid
        WHERE relnamespace = $1::regnamespace AND indisreplident)",
                                     {shard.quoted});
    Keys keys;
    for (int i = 0; i < rows.rows(); i++)
        keys.emplace(rows.number(i, 0), rows.number(i, 1));
    return keys;
}

/* The statements of keys, or all others. */
std::string post_data(Connection& source, const Shard& shard, const Archive& archive, bool of_keys)
{
    const Keys keys = find_keys(source, shard);
    std::vector<Archive::Item> items;
    for (const Archive::Item& item : archive.items(Archive::Section::post_data))
        if ((keys.count({item.catalog, item.object}) > 0) == of_keys)
            items.push_back(item);
    return archive.sql(items);
}

} // namespace

std::string definition_before_rows(Connection& source, const Shard& shard, const Archive& archive)
{
    return archive.sql(archive.items(Archive::Section::pre_data)) +
           post_data(source, shard, archive, true);
}

std::string definition_after_rows(Connection& source, const Shard& shard, const Archive& archive)
{
    return post_data(source, shard, archive, false);
}
