#include "move/obstacles.h"

#include <thread>

#include "base/output.h"
#include "fleet/closed.h"
#include "fleet/in_transit.h"
#include "cutover/dependents.h"
#include "cutover/opening.h"
#include "cutover/standby.h"
#include "move/other_replication.h"
#include "move/replication.h"
#include "move/rights.h"
#include "move/state.h"
#include "replication/keys.h"
#include "replication/needed.h"
#include "replication/trial.h"
#include "postgres/decoding.h"
#include "postgres/drop_schemas.h"
#include "postgres/dump.h"
#include "postgres/extension.h"
#include "sql/sql.h"

namespace
{

/* Queries whose rows are obstacles: the problem, and the statement that mends it. A slot waits for
 * the transactions of all databases. It waits only for transactions with an XID, so readers in
 * other databases are left out. One in this database can still write; if it has run longer than
 * --timeout ($1, in seconds), it is likely to outlast the cutover. Sessions of this command are
 * left out: they end with it. A prepared transaction is an obstacle at any age, because no process
 * will end it. */
const char* const kOldTransactions = R"(
SELECT format('a transaction of process %s in database %I has been running for %s', pid, datname, date_trunc('second', age)),
       format('SELECT pg_terminate_backend(%s); or wait', pid)
FROM pg_stat_activity, LATERAL (SELECT clock_timestamp() - xact_start) AS a (age)
WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() AND application_name !~ '^snowflake-shard'
AND (datname = current_database() OR backend_xid IS NOT NULL)
AND age > make_interval(secs => $1::double precision)
UNION ALL
SELECT format('transaction %L of database %I is prepared', gid, database),
       format('ROLLBACK PREPARED %L; or COMMIT PREPARED', gid)
FROM pg_prepared_xacts)";

/* The processes that have such a lock on the shard $1. A prepared transaction has none. */
const char* const kLocked = R"(
SELECT format('%s has an ACCESS EXCLUSIVE lock on %s, and pg_dump would wait for it',
              coalesce('process ' || pid, 'a prepared transaction'),
              string_agg(relation::regclass::text, ', ' ORDER BY relation)),
       coalesce(format('SELECT pg_terminate_backend(%s); or wait', pid), 'SELECT * FROM pg_prepared_xacts;')
FROM pg_locks JOIN pg_class ON pg_class.oid = relation
WHERE mode = 'AccessExclusiveLock' AND granted AND relnamespace = ANY ($1::regnamespace[])
AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
GROUP BY pid)";

/* A split on either server is an obstacle. The tables of the source have the triggers of the split,
 * ENABLE ALWAYS, which pg_dump would copy. split --complete would drop the shard on a target whose
 * record says that it is closed there. A shard that came after the split has none of this. While
 * the split is under way, a promotion can make a second copy of any shard. */
Obstacles find_split(Connection& connection, const Shards& shards)
{
    if (const auto split = read_split(connection); split && split->is_under_way())
        return {{connection.server(), "the server is being split", next_commands(*split)}};
    for (const InTransit& one : read_in_transit(connection))
        for (const Shard& shard : shards)
            if (one.kind == InTransit::Kind::split && one.shard.schema == shard.schema)
                return {{connection.server(),
                         "schema " + visible(shard.schema) +
                             " is of a split that still has its triggers and old rows",
                         next_commands(one)}};
    return {};
}

/* Whole seconds are compared, so a difference of one can be the rounding. */
void tell_of_clocks(Servers& servers)
{
    const std::string sql = "SELECT EXTRACT(epoch FROM clock_timestamp())::bigint";
    const std::int64_t here = servers.source.query(sql).number(0, 0);
    const std::int64_t apart = servers.target.query(sql).number(0, 0) - here;
    if (apart < -1 || apart > 1)
        warn("the clock of " + servers.target.server() + " is " + std::to_string(std::abs(apart)) +
             " s " + (apart < 0 ? "behind" : "ahead of") + " that of " + servers.source.server());
}

/* The walsender sends values as text, with its own lc_monetary. The worker is of the role of this
 * session, and so has the settings of this role and database. home: where the shards are now. */
Obstacles find_settings_of_worker(Connection& publisher, Connection& subscriber, Connection& home,
                                  const Shards& shards)
{
    const std::string locale = publisher.query("SELECT current_setting('lc_monetary')").text(0, 0);
    const Result money = home.query(money_columns_sql, {schemas_of(shards)});
    Obstacles found;
    found.read(subscriber, settings_of_worker_sql,
               {locale, money.rows() == 0 ? "" : money.text(0, 0)});
    return found;
}

/* Event triggers run with each statement of the definition; diff shows their changes afterwards.
 * Triggers on login (PostgreSQL 17) do not. */
void tell_of_event_triggers(Connection& target)
{
    const Result triggers = target.query(R"(
        SELECT format('event trigger %I will run %s', evtname, evtfoid::regprocedure)
        FROM pg_event_trigger WHERE evtenabled <> 'D' AND evtevent <> 'login' ORDER BY 1)");
    for (const std::string& trigger : texts_of(triggers))
        warn(target.server() + ": " + visible(trigger) + " while the definition is made there");
}

/* Rows are read and written in sessions of the tables' owners. */
Obstacles find_session_problems(Connection& server, Connection& source, const Shards& shards)
{
    if (!has_extension(server))
        return {};
    const std::string owners = source.query(table_owners_sql, {schemas_of(shards)}).text(0, 0);
    Obstacles found;
    found.read(server, session_problems_sql, {owners});
    return found;
}

/* The obstacles on the source. */
Obstacles find_on_source(Connection& source, const Move& move, const Limits& limits)
{
    Obstacles found = find_on_publisher(source);
    found.read(source, kOldTransactions, {limits.seconds()});
    found.add(find_taken_names(source, move));
    found.add(find_session_problems(source, source, move.shards));
    found.add(find_not_replicable(source, move.shards));
    found.add(find_unqualified_names(source, move.shards));
    found.add(find_extensions_in(source, schemas_of(move.shards)));
    /* The definition of a superuser's shard is made with a superuser's rights. */
    if (has_extension(source))
        found.read(source,
                   "SELECT problem, hint FROM unnest($1::regnamespace[]) AS n CROSS JOIN LATERAL "
                   "snowflake_internal.foreign_code(n) WHERE problem IS NOT NULL",
                   {schemas_of(move.shards)});
    for (const std::string& dependent : find_dependents(source, move.shards))
        found.add(source.server(), dependent, "Drop it, or move it into the schema.");
    return found;
}

/* A trial of the definition on the target. tried gets it if there is no obstacle. */
Obstacles try_on_target(Servers& servers, const Move& move, const std::string& publisher,
                        bool replaces_copy, std::shared_ptr<const Tried>& tried)
{
    auto& [source, target] = servers;
    try {
        auto read = std::make_shared<const Tried>(source, move.shards);
        Obstacles found = try_definition(target, move.shards, &read->archive, move.name, publisher,
                                         replaces_copy);
        if (found.empty())
            tried = std::move(read);
        return found;
    } catch (const ServerError&) {
        throw; /* a server that does not answer is no obstacle */
    } catch (const Failure& error) {
        return {{source.server(), error.what(),
                 "A move needs a working pg_dump and pg_restore, and the right to lock and read "
                 "the shard."}};
    }
}

/* The obstacles on the target. */
Obstacles find_on_target(Servers& servers, const Move& move, const std::string& publisher,
                         std::shared_ptr<const Tried>& tried)
{
    auto& [source, target] = servers;
    const Result version = source.query(R"(
        SELECT extversion, extnamespace::regnamespace FROM pg_extension WHERE extname = 'snowflake')");
    /* The closed copy of an undone move is dropped before the new one begins. It is no obstacle,
     * unless something depends on it. */
    const bool replaces_copy = Standing(servers, move).phase() == Phase::undone;
    const std::string names =
        sql_array(replaces_copy ? std::vector<std::string>() : schemas_in(move.shards));
    Obstacles found;
    found.read(target, on_target_sql, {names, version.text(0, 0), version.text(0, 1)});
    if (replaces_copy) {
        found.add(find_extensions_in(target, schemas_of(move.shards)));
        for (const std::string& dependent : find_dependents(target, move.shards))
            found.add(target.server(), dependent, "Drop it, or move it into the schema.");
    } else
        found.add(find_taken_names(target, move));
    if (source.encoding() != target.encoding())
        found.add(target.server(),
                  "the database has encoding " + target.encoding() + ", and the source " +
                      source.encoding(),
                  "Make it anew: CREATE DATABASE ... ENCODING '" + source.encoding() +
                      "' TEMPLATE template0;");
    found.add(find_missing_rights(target, read_owners(source, move.shards), publisher));
    found.add(find_session_problems(target, source, move.shards));
    for (const char* const name : {"pg_dump", "pg_restore"})
        found.add(find_old_program(source, name));
    /* An extension or right that is missing, or a schema that is there, would make the trial fail
     * with errors that follow from it. Default privileges do not. */
    if (!found.empty())
        return found;
    found = find_needed(source, target, move.shards);
    if (!found.empty())
        found.add(
            try_definition(target, move.shards, nullptr, move.name, publisher, replaces_copy));
    else if (!tried)
        found = try_on_target(servers, move, publisher, replaces_copy, tried);
    return found;
}

} // namespace

/* Most end soon, such as that of an autovacuum that truncates a table. */
Obstacles find_locked(Connection& source, const Shards& shards, const Limits& limits)
{
    const auto deadline = limits.deadline();
    for (;; std::this_thread::sleep_for(std::chrono::milliseconds(100))) {
        Obstacles found;
        found.read(source, kLocked, {schemas_of(shards)});
        if (found.empty() || Clock::now() > deadline)
            return found;
    }
}

Obstacles find_obstacles(Servers& servers, const Move& move, const std::string& publisher,
                         const Limits& limits, std::shared_ptr<const Tried>& tried)
{
    const bool is_repeated = tried != nullptr;
    auto& [source, target] = servers;
    Obstacles found = find_split(source, move.shards);
    found.add(find_split(target, move.shards));
    /* Report only these: the hints for a trigger that fires always, or for a schema that exists,
     * would open the fence of the split or drop its rows. */
    if (!found.empty())
        return found;
    found.add(find_obstacles_of_cutover(servers, move));
    found.add(find_on_source(source, move, limits));
    found.add(find_on_target(servers, move, publisher, tried));
    found.add(find_obstacles_of_workers(target, source, move.shards));
    const Result owners = source.query(
        "SELECT array_agg(pg_get_userbyid(nspowner)) FROM pg_namespace WHERE oid = ANY "
        "($1::regnamespace[])",
        {schemas_of(move.shards)});
    found.read(target, default_privileges_sql, {owners.text(0, 0)});
    if (is_repeated)
        return found;
    /* It reads all rows, so it comes when nothing else is in the way. */
    UncheckedKeys unchecked;
    if (found.empty())
        found = find_broken_references(source, move.shards, unchecked);
    if (found.empty())
        found = find_missing_references(source, target, move.shards, unchecked);
    tell_of_large_objects(source, move.shards);
    tell_of_outside_sequences(source, move.shards);
    tell_of_full_identity(source, target, move.shards);
    tell_of_event_triggers(target);
    tell_of_readers(servers, move.shards);
    tell_of_clocks(servers);
    return found;
}

/* An INSERT waits for a synchronous standby, is lost to a writer that no fence stops, or is an
 * error. Rights are not among these: the statements that need them come before the fence. */
Obstacles find_obstacles_of_cutover(Servers& servers, const Move& move)
{
    auto& [source, target] = servers;
    Obstacles found;
    for (Connection* const server : {&source, &target})
        found.add(find_missing_standby(*server));
    found.add(find_writing_subscriptions(servers, move));
    found.add(find_open_parents(source, move.shards));
    found.add(find_settings_of_worker(source, target, source, move.shards));
    found.add(find_read_only(source, target));
    if (has_extension(target)) /* else it is another obstacle */
        found.add(find_slow_clock(source, target, move.shards, "the source"));
    return found;
}

Obstacles find_on_publisher(Connection& publisher)
{
    Obstacles found = find_low_wal_level(publisher);
    found.add(find_standby_of_any_name(publisher));
    found.add(find_refused_plugins(publisher));
    found.add(find_missing_to_publish(publisher));
    return found;
}

Obstacles find_obstacles_of_reverse(Servers& servers, const Move& move,
                                    const std::string& publisher, const Limits& limits)
{
    auto& [source, target] = servers;
    Obstacles found = find_on_publisher(target);
    found.read(target, kOldTransactions, {limits.seconds()});
    found.add(find_obstacles_of_follower(servers, move, publisher));
    /* The source has the definition, so only the subscription is tried; and not under a name that
     * is taken, which is an obstacle of find_obstacles(). */
    if (found.empty() && find_taken_names(source, move).empty())
        found = try_subscription(source, move.name, publisher);
    return found;
}

/* The owners are read on the source, because the target does not have the shard yet. */
Obstacles find_obstacles_of_follower(Servers& servers, const Move& move,
                                     const std::string& publisher)
{
    auto& [source, target] = servers;
    Obstacles found;
    found.add(find_missing_advance(source));
    found.add(find_settings_of_worker(target, source, source, move.shards));
    found.add(find_missing_rights(source, read_owners(source, move.shards), publisher));
    found.add(find_old_program(target, "pg_dump"));
    found.add(find_obstacles_of_workers(source, source, move.shards));
    return found;
}
