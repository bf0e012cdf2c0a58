#include "postgres/skipped.h"

/* Other conflicts are errors, or the change is applied all the same. The view has the subscriptions
 * of all databases. */
Obstacles find_skipped(Connection& subscriber, const std::string& name)
{
    Obstacles found;
    found.read(subscriber, R"(
        SELECT format('subscription %I has skipped %s of rows that are missing here', subname, CASE n WHEN 1 THEN '1 change' ELSE n || ' changes' END),
               format('Compare the rows, and make them equal. Then: SELECT pg_stat_reset_subscription_stats(%s);', s.oid)
        FROM pg_subscription AS s JOIN pg_database AS d ON d.oid = subdbid AND datname = current_database(),
             LATERAL (SELECT sum(value::bigint) FROM pg_stat_subscription_stats AS c CROSS JOIN jsonb_each_text(to_jsonb(c))
                      WHERE subid = s.oid AND key ~ '^confl_(update|delete)_(missing|deleted)$') AS c (n)
        WHERE subname = $1 AND n > 0)",
               {name});
    return found;
}
