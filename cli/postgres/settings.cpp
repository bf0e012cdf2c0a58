#include "postgres/settings.h"

#include "sql/sql.h"

void withstand_settings(Connection& connection)
{
    /* By run(), because a replication connection has no extended protocol. */
    connection.run(session_settings_sql);
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
