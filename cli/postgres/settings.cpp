#include "postgres/settings.h"

/* Settings that this server does not have, or does not let us set, are left out. */
void withstand_settings(Connection& connection)
{
    /* An autovacuum that is in the way is ended after deadlock_timeout. With
     * client_connection_check_interval (14) the backend of a killed command ends also while it
     * works or waits for a lock; without an answer of a host that has vanished it ends after a
     * minute (tcp_keepalives_*, tcp_user_timeout). synchronous_commit = on: a step that the command
     * has seen committed must survive a crash, because the next step on the other server relies on
     * it. standard_conforming_strings: SQL is written for it. By run(), because a replication
     * connection has no extended protocol. */
    connection.run(R"(
        SELECT set_config(name, s.setting, false)
        FROM (VALUES ('client_min_messages', 'error'), ('synchronous_commit', 'on'), ('row_security', 'off'),
                     ('statement_timeout', '0'), ('lock_timeout', '0'), ('transaction_timeout', '0'),
                     ('idle_in_transaction_session_timeout', '0'), ('idle_session_timeout', '0'),
                     ('default_transaction_read_only', 'off'), ('default_transaction_isolation', 'read committed'),
                     ('session_replication_role', 'origin'),
                     ('standard_conforming_strings', 'on'), ('client_connection_check_interval', '500ms'),
                     ('tcp_keepalives_idle', '30'), ('tcp_keepalives_interval', '10'), ('tcp_keepalives_count', '3'),
                     ('tcp_user_timeout', '60s'), ('deadlock_timeout', '10ms')) AS s (name, setting)
        JOIN pg_settings AS p USING (name)
        WHERE p.context <> 'superuser' OR has_parameter_privilege(name, 'SET'))");
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
