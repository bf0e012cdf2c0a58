#include "postgres/decoding.h"

#include "sql/sql.h"

Obstacles find_low_wal_level(Connection& publisher)
{
    const bool raises_level = publisher.version() >= 190000;
    Obstacles found;
    found.read(publisher, R"(
        SELECT 'wal_level = ' || level, format('ALTER SYSTEM SET wal_level = %s; and restart the server', $1::text)
        FROM current_setting('wal_level') AS level WHERE level <> 'logical' AND level <> $1)",
               {raises_level ? "replica" : "logical"});
    return found;
}

/* "*" in quotes is the same to the server, and another name in quotes may have a * in it. The
 * standbys are those that stream, without the readers of logical slots. */
Obstacles find_standby_of_any_name(Connection& publisher)
{
    Obstacles found;
    found.read(publisher, R"(
        SELECT format('synchronous_standby_names = %L: a subscription counts as a standby by *, so a failover can lose commits that were confirmed', names),
               format('ALTER SYSTEM SET synchronous_standby_names = ...; with %s in place of *, and SELECT pg_reload_conf();',
                      coalesce((SELECT string_agg(DISTINCT quote_ident(application_name), ', ') FROM pg_stat_replication AS r
                                WHERE state = 'streaming'
                                AND NOT EXISTS (SELECT FROM pg_replication_slots WHERE slot_type = 'logical' AND active_pid = r.pid)),
                               'the names of the standbys'))
        FROM current_setting('synchronous_standby_names') AS names
        WHERE EXISTS (SELECT FROM regexp_matches(names, '"(?:[^"]|"")*"|\*', 'g') AS m (name) WHERE name[1] IN ('*', '"*"')))");
    return found;
}

Obstacles find_refused_plugins(Connection& publisher, const std::vector<std::string>& plugins)
{
    Obstacles found;
    found.read(publisher, refused_plugins_sql, {sql_array(plugins)});
    return found;
}
