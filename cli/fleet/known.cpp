#include "fleet/known.h"

#include "fleet/catalog.h"
#include "postgres/extension.h"

const MoveState* Known::find_move(const std::string& schema) const
{
    for (const MoveState& move : moves)
        for (const Shard& shard : move.shards)
            if (shard.schema == schema)
                return &move;
    return nullptr;
}

std::optional<Shard> Known::find(const std::string& schema) const
{
    if (const MoveState* const move = find_move(schema))
        for (const Shard& shard : move->shards)
            if (shard.schema == schema)
                return shard;
    for (const Shard& shard : open)
        if (shard.schema == schema)
            return find_shard(open, schema, server);
    return {};
}

Known read_known(Connection& connection)
{
    return {connection.server(), read_moves(connection),
            has_extension(connection) ? read_shards(connection) : Shards()};
}
