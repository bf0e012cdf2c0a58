#include "verbs/counted_keys.h"

#include "base/output.h"
#include "base/quoting.h"
#include "sql/sql.h"

std::vector<CountedKey> find_counted_keys(Connection& connection, const Shards& shards)
{
    const Result found = connection.query(counted_keys_sql, {oids_of(shards)});
    std::vector<CountedKey> keys;
    for (int i = 0; i < found.rows(); i++)
        keys.push_back({found.text(i, 0), found.text(i, 1), found.number(i, 2)});
    return keys;
}

void warn_of(const std::vector<CountedKey>& keys)
{
    for (const CountedKey& key : keys)
        warn("each shard counts " + visible(key.column) + " from 1" +
             (key.shards > 1 ? ", in " + std::to_string(key.shards) + " shards" : "") +
             ": rows of two shards have equal keys, and a key does not tell its shard.\nHINT:  If "
             "other shards or programs keep this key, run in each shard: " +
             visible(key.statement));
}
