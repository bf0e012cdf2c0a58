#include "fleet/failover.h"

Obstacles find_unsynchronized(Connection& follower, const std::string& subscription)
{
    Obstacles found;
    found.read(follower, R"(
        SELECT format('subscription %I does not wait for the synchronous standby, which can lack changes after a failover', subname),
               format('ALTER SUBSCRIPTION %I SET (synchronous_commit = on);', subname)
        FROM pg_subscription JOIN pg_database AS d ON d.oid = subdbid AND datname = current_database()
        WHERE subname = $1 AND subsynccommit IN ('off', 'local') AND current_setting('synchronous_standby_names') <> '')",
               {subscription});
    return found;
}

namespace
{

/* "" on a standby. The name of a file of WAL begins with it; pg_control_checkpoint() has the new
 * one only after the first checkpoint. */
std::string timeline_of(Connection& follower)
{
    return follower
        .query("SELECT CASE WHEN NOT pg_is_in_recovery() THEN 'timeline ' || "
               "left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) END")
        .text(0, 0);
}

} // namespace

void note_timeline(Connection& follower, const std::string& record)
{
    follower.run("COMMENT ON TABLE " + record + ".state IS " +
                 follower.literal(timeline_of(follower)));
}

bool was_promoted(Connection& follower, const std::string& record)
{
    const std::string timeline = timeline_of(follower);
    return !timeline.empty() &&
           follower.query("SELECT FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = "
                          "relnamespace WHERE nspname = $1 AND relname = 'state' AND "
                          "obj_description(c.oid, 'pg_class') <> $2",
                          {record, timeline})
                   .rows() > 0;
}

Obstacles find_promoted(Connection& follower, const std::string& record)
{
    Obstacles found;
    if (was_promoted(follower, record))
        found.add(follower.server(), std::string("the server ") + kMayLack,
                  "If they are equal: COMMENT ON TABLE " + record + ".state IS " +
                      follower.literal(timeline_of(follower)) + ";");
    return found;
}
