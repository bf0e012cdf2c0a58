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
