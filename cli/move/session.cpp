#include "move/session.h"

#include <optional>

#include "move/state.h"
#include "postgres/advisory.h"
#include "postgres/extension.h"
#include "postgres/servers.h"

namespace
{

const std::string kDoing = "moving the shard";

/* A shard that is open there, or that a move there knows. A fenced shard can be missing from the
 * registry, because the fence has replaced the functions that make its IDs. */
std::optional<Shard> look_for_shard(Connection& connection, const std::string& schema)
{
    for (const MoveState& move : read_moves(connection))
        if (move.schema == schema)
            return Shard{move.shard, schema, connection.identifier(schema)};
    for (const Shard& shard : read_shards(connection))
        if (shard.schema == schema)
            return find_shard(connection, schema); /* an error if it has two numbers */
    return {};
}

/* The target has it alone when the old rows have been dropped. */
Shard find_shard_of_move(Servers& servers, const std::string& schema)
{
    if (const auto shard = look_for_shard(servers.source, schema))
        return *shard;
    if (const auto shard = look_for_shard(servers.target, schema))
        return *shard;
    return find_shard(servers.source, schema);
}

Move name_move(Servers& servers, const std::string& schema)
{
    const Shard shard = find_shard_of_move(servers, schema);
    const std::string name = "snowflake_move_" + std::to_string(shard.number);
    return {shard, name, name_slot(servers.source, name), name_slot(servers.target, name)};
}

} // namespace

/* Settings that this server does not have, or does not let us set, are left out. */
void withstand_settings(Connection& connection)
{
    /* An autovacuum that is in the way is ended after deadlock_timeout. With
     * client_connection_check_interval (14) the backend of a killed command ends also while it
     * waits for a lock. synchronous_commit = on: a step that the command has seen committed must
     * survive a crash, because the next step on the other server relies on it.
     * standard_conforming_strings: SQL is written for it. */
    connection.query(R"(
        SELECT set_config(name, s.setting, false)
        FROM (VALUES ('client_min_messages', 'error'), ('synchronous_commit', 'on'), ('row_security', 'off'),
                     ('statement_timeout', '0'), ('lock_timeout', '0'), ('transaction_timeout', '0'),
                     ('idle_in_transaction_session_timeout', '0'), ('idle_session_timeout', '0'),
                     ('default_transaction_read_only', 'off'), ('default_transaction_isolation', 'read committed'),
                     ('session_replication_role', 'origin'),
                     ('standard_conforming_strings', 'on'), ('client_connection_check_interval', '500ms'),
                     ('deadlock_timeout', '10ms')) AS s (name, setting)
        JOIN pg_settings AS p USING (name)
        WHERE p.context <> 'superuser' OR has_parameter_privilege(name, 'SET'))");
}

/* The lock is of the session and not of a transaction, because a move commits many times. The
 * backend of a command that was killed ends soon, and so does its lock: 5 s is ten times
 * client_connection_check_interval. */
void lock_name(Connection& connection, const std::string& name, const std::string& doing)
{
    lock_by_name(connection, name, std::chrono::seconds(5), doing);
}

std::string name_slot(Connection& connection, const std::string& move)
{
    const std::string sql = "SELECT oid FROM pg_database WHERE datname = current_database()";
    return move + "_" + connection.query(sql).text(0, 0);
}

void hide_statements(Connection& connection)
{
    /* An error logs its statement, too (log_min_error_statement), and pg_stat_activity shows it
     * (track_activities). Modules that are not loaded have no row in pg_settings. */
    connection.query(R"(
        SELECT set_config(name, s.setting, true)
        FROM (VALUES ('log_statement', 'none'), ('log_min_duration_statement', '-1'), ('log_min_duration_sample', '-1'),
                     ('log_transaction_sample_rate', '0'), ('log_min_error_statement', 'panic'), ('log_duration', 'off'),
                     ('log_parameter_max_length', '0'), ('log_parameter_max_length_on_error', '0'),
                     ('debug_print_parse', 'off'), ('debug_print_rewritten', 'off'), ('debug_print_plan', 'off'),
                     ('track_activities', 'off'), ('pg_stat_statements.track', 'none'), ('pgaudit.log', 'none'),
                     ('auto_explain.log_min_duration', '-1')) AS s (name, setting)
        JOIN pg_settings AS p USING (name)
        WHERE p.context <> 'superuser' OR has_parameter_privilege(name, 'SET'))");
}

Servers::Servers(const std::string& from, const std::string& to) : source(from), target(to)
{
    require_extension(source);
    require_build(target);
    withstand_settings(source);
    withstand_settings(target);
}

Session::Session(const std::string& from, const std::string& to, const std::string& schema)
    : servers(from, to), move(name_move(servers, schema))
{
    /* Before the locks: in one database the second would wait for the first. */
    if (is_same_server(servers.source, servers.target))
        throw UsageError("--from and --to are the same: " + servers.source.server());
    /* A command with the servers exchanged locks them in the other order. lock_timeout ends their
     * wait for each other. */
    lock_name(servers.source, move.name, kDoing);
    lock_name(servers.target, move.name, kDoing);
}

Move opposite(const Move& move)
{
    return {move.shard, move.name, move.back_slot, move.slot};
}

std::string Move::title() const
{
    return "shard " + std::to_string(shard.number) + ", schema " + visible(shard.schema);
}

std::vector<std::string> Move::variables() const
{
    return {"SHARD=" + std::to_string(shard.number), "SCHEMA=" + shard.schema};
}

std::string Move::sql(std::string text) const
{
    const std::string mark = "@move@";
    for (std::size_t at = 0; (at = text.find(mark, at)) != std::string::npos;)
        text.replace(at, mark.size(), name);
    return text;
}

std::vector<std::string> tables_of(Connection& connection, const Shard& shard,
                                   const std::string& kinds)
{
    return texts_of(connection.query(R"(
        SELECT oid::regclass FROM pg_class
        WHERE relnamespace = $1::regnamespace AND strpos($2, relkind::text) > 0 ORDER BY oid)",
                                     {shard.quoted, kinds}));
}
