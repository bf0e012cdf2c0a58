#include "split/command.h"

#include <map>

#include "base/output.h"
#include "cutover/opening.h"
#include "cutover/standby.h"
#include "fleet/closed.h"
#include "fleet/in_transit.h"
#include "postgres/decoding.h"
#include "postgres/drop_schemas.h"
#include "postgres/extension.h"
#include "postgres/trust.h"
#include "split/session.h"
#include "split/standby.h"
#include "sql/sql.h"

namespace
{

/* The record of an earlier split, or a schema of its name. */
const std::string kEarlierSplit = R"(
SELECT CASE WHEN is_trusted THEN format('schema %s is there already: an earlier split is not at its end', nspname)
            ELSE format('schema %s is there already: it belongs to role %I', nspname, pg_get_userbyid(nspowner)) END,
       CASE WHEN is_trusted THEN 'snowflake-shard split --complete with the servers of that split.'
            ELSE format('If that role has begun a split, connect as that role. Else: DROP SCHEMA %I CASCADE;', nspname) END
FROM pg_namespace, LATERAL (SELECT oid NOT IN ()" +
                                  untrusted_schemas("'^snowflake_split$'") + R"()) AS t (is_trusted)
WHERE nspname = 'snowflake_split')";

/* The role needs this right on both servers: without it the columns of the views of replication and
 * of others' sessions are NULL, and would look like a standby that does not stream. Their result is
 * not judged then. The roles of the two connections may differ, and that of the standby gets its
 * rights by the WAL. */
const char* const kStatistics = R"(
SELECT format('role %I may not read the statistics of other roles'' sessions', current_user),
       format('GRANT pg_read_all_stats TO %I; on the server of --from', current_user)
WHERE NOT pg_has_role('pg_read_all_stats', 'USAGE'))";

const char* const kNoFollower = R"(
SELECT 'no standby follows it: pg_stat_replication has no row in state streaming',
       'Let primary_conninfo of the standby lead to it.'
WHERE pg_has_role('pg_read_all_stats', 'USAGE') AND NOT EXISTS (SELECT FROM pg_stat_replication WHERE state = 'streaming'))";

/* The records of moves, and schemas of their name without a record. */
Obstacles find_unended_moves(Connection& old)
{
    std::map<std::string, std::string> hints;
    const Result schemas =
        old.query("SELECT nspname FROM pg_namespace WHERE nspname ~ '^snowflake_move_[0-9]{1,4}$'");
    for (const std::string& schema : texts_of(schemas))
        hints[schema] = "It has no record of a move. DROP SCHEMA " + schema + " CASCADE;";
    for (const InTransit& one : read_in_transit(old))
        if (one.kind == InTransit::Kind::move)
            hints[one.record] = next_commands(one);
    Obstacles found;
    for (const auto& [schema, hint] : hints)
        found.add(old.server(), "schema " + schema + ": a move is not at its end", hint);
    return found;
}

Shards side_of(const std::vector<SplitShard>& shards, bool leave)
{
    Shards side;
    for (const SplitShard& shard : shards)
        if (shard.leaves == leave)
            side.push_back(shard);
    return side;
}

/* Each server closes the shards of one side, and its clients write to the rest. */
Obstacles find_open_parents_of_sides(Connection& old, const std::vector<SplitShard>& shards)
{
    Obstacles found = find_open_parents(old, side_of(shards, true));
    found.add(find_open_parents(old, side_of(shards, false)));
    return found;
}

/* The application_name in primary_conninfo, as the receiver uses it, and its slot. If there is no
 * such name, it is cluster_name or walreceiver, which the receiver gives as
 * fallback_application_name. Empty if no receiver runs. */
std::vector<std::string> names_of_standby(Connection& standby)
{
    const Result receiver = standby.query(R"(
        SELECT coalesce(substring(conninfo, '(?:^|\s)application_name=(\S+)'),
                        substring(conninfo, 'fallback_application_name=(\S+)'), 'walreceiver'), slot_name
        FROM pg_stat_wal_receiver)");
    if (receiver.rows() == 0)
        return {"", ""};
    return {receiver.text(0, 0), receiver.text(0, 1)};
}

} // namespace

Obstacles find_obstacles_of_closing(Connection& old, const std::vector<SplitShard>& shards)
{
    Obstacles found;
    found.read(old, before_closing_sql, {sql_array(schemas_in({shards.begin(), shards.end()}))});
    found.add(find_open_parents_of_sides(old, shards));
    return found;
}

Obstacles find_obstacles_of_promotion(Connection& old, Connection& standby,
                                      const std::vector<SplitShard>& shards)
{
    Obstacles found = find_missing_standby(old);
    found.read(old, without_standby_sql, names_of_standby(standby));
    found.read(standby, at_promotion_sql);
    found.add(find_refused_plugins(standby, plugins_of_slots(old)));
    if (has_extension(standby)) /* else it is another database */
        found.add(find_slow_clock(old, standby, side_of(shards, true), "the old server"));
    return found;
}

Obstacles find_obstacles(Connection& old, Connection& standby,
                         const std::vector<SplitShard>& shards, const Limits& limits)
{
    /* Report only this: pg_current_wal_lsn() and others are errors in recovery. */
    if (is_in_recovery(old))
        return {{old.server(), "it is a standby itself",
                 "Give the server that is split as --from, and its standby as --standby."}};
    Obstacles found;
    found.read(old, kEarlierSplit);
    found.read(old, on_old_server_sql,
               {sql_array(schemas_in({shards.begin(), shards.end()})), limits.seconds()});
    found.add(find_obstacles_of_closing(old, shards));
    found.add(find_extensions_in(old, schemas_of({shards.begin(), shards.end()})));
    found.add(find_unended_moves(old));
    for (Connection* connection : {&old, &standby})
        found.read(*connection, kStatistics);
    found.read(old, kNoFollower);
    found.add(find_obstacles_of_promotion(old, standby, shards));
    const Result identity = old.query(R"(
        SELECT system_identifier, oid, ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int
        FROM pg_control_system(), pg_database WHERE datname = current_database())");
    const std::size_t slots = logical_slots(old).size();
    found.read(standby, on_standby_sql,
               {identity.text(0, 0), identity.text(0, 1), identity.text(0, 2),
                std::to_string(slots), old.query("SELECT current_user").text(0, 0)});
    if (slots > 0)
        found.add(find_low_wal_level(standby));
    /* A server that follows nobody has no replay to be measured. */
    if (is_in_recovery(standby))
        if (const std::int64_t lag = lag_of(old, standby); lag > kFarBehind)
            found.add(standby.server(), "it is behind by " + pretty_size(lag) + " of WAL",
                      "Wait until pg_stat_replication of the server has a small replay_lag.");
    return found;
}

/* The standby serves its readers now, and the clients of the aliases as well after the cutover.
 * reserved_connections is there from PostgreSQL 16 on. max_connections needs a restart, so this is
 * looked for before the split; the hint has ten to spare. */
Obstacles find_too_few_connections(Connection& standby, int connections)
{
    Obstacles found;
    found.read(standby, R"(
        SELECT format('max_connections = %s, of which %s are reserved; %s are in use, and the aliases have %s', most, reserved, used, $1::text),
               format('ALTER SYSTEM SET max_connections = %s; and restart the standby, or smaller pools in PgBouncer',
                      used + $1::integer + reserved + 10)
        FROM (SELECT current_setting('max_connections')::integer AS most,
                     current_setting('superuser_reserved_connections')::integer
                     + coalesce(current_setting('reserved_connections', true)::integer, 0) AS reserved,
                     (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend') AS used) AS c
        WHERE used + $1::integer + reserved > most)",
               {std::to_string(connections)});
    return found;
}
