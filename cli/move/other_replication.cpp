#include "move/other_replication.h"

#include "base/output.h"
#include "fleet/closed.h"
#include "sql/sql.h"

/* They are no obstacles: the readers may be prepared, or may not need these changes. */
void tell_of_readers(Servers& servers, const Shards& shards)
{
    const auto tell = [&shards](Connection& server, const std::string& text) {
        const Result readers = server.query(other_readers_sql, {schemas_of(shards)});
        if (readers.rows() > 0)
            warn(server.server() + ": " + visible(readers.text(0, 0)) + ": " + text +
                 " (docs/change-data.md)");
    };
    auto& [source, target] = servers;
    tell(source, "changes of the shard come from there until the cutover, and then from " +
                     target.server());
    tell(target, "the copied rows come from there, too, unless the reader leaves out rows that "
                 "have an origin");
}

Obstacles find_writing_subscriptions(Connection& connection, const Move& move)
{
    return find_writing_subscriptions(connection, move.shards, move.name);
}

Obstacles find_writing_subscriptions(Servers& servers, const Move& move)
{
    Obstacles found = find_writing_subscriptions(servers.source, move);
    found.add(find_writing_subscriptions(servers.target, move));
    return found;
}
