/* A trial of the steps behind the point of no return: an error there would end a split that can
 * neither be finished nor undone. */

#include "split/changes.h"
#include "split/command.h"
#include "split/fence.h"
#include "sql/sql.h"

namespace
{

/* A connection that is lost is no obstacle of the step. */
void try_step(Obstacles& found, Connection& connection, const std::function<void()>& step)
{
    try {
        step();
        connection.rollback();
    } catch (const ServerError& error) {
        if (!connection.is_alive())
            throw;
        connection.rollback();
        found.add(connection.server(), error.what(),
                  "Remove the cause of this error. A split does the same after the promotion, when "
                  "it cannot go back.");
    }
}

} // namespace

/* The old server has the rights and the functions that come to the standby by the WAL. The standby
 * can only read, and has settings and libraries of its own. */
Obstacles try_after_promotion(Connection& old, Connection& standby,
                              const std::vector<SplitShard>& shards)
{
    Shards leaving;
    for (const SplitShard& shard : shards)
        if (shard.leaves)
            leaving.push_back(shard);
    Obstacles found;
    try_step(found, old, [&] {
        old.run("BEGIN");
        if (!read_split(old))
            make_split(old, standby.address(), shards);
        old.run(after_promotion_sql);
        try_to_tell(old, leaving, kSplitSchema);
    });
    try_step(found, standby, [&] {
        see_promoted(standby);
        try_to_tell(standby, leaving, "");
    });
    return found;
}
