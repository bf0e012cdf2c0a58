#include "fleet/children.h"

#include "base/quoting.h"
#include "sql/sql.h"

std::vector<OutsideChildren> find_outside_children(Connection& connection, const Shards& shards,
                                                   const Shards& all)
{
    const Result rows = connection.query(outside_children_sql, {oids_of(shards), oids_of(all)});
    std::vector<OutsideChildren> found;
    for (int i = 0; i < rows.rows(); i++)
        for (const Shard& shard : shards)
            if (shard.oid == rows.text(i, 0)) {
                found.push_back({shard, visible(rows.text(i, 1)), visible(rows.text(i, 2))});
                break; /* a schema can have several numbers */
            }
    return found;
}
