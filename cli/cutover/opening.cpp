#include "cutover/opening.h"

#include "sql/sql.h"

namespace
{

/* The session has the settings of the library when that is loaded. */
void load_library(Connection& connection)
{
    connection.query("SELECT snowflake_internal.is_citus_copy(1, 3)");
}

bool is_read_only(Connection& server)
{
    return server
        .query("SELECT reset_val = 'on' FROM pg_settings "
               "WHERE name = 'default_transaction_read_only'")
        .flag(0, 0);
}

} // namespace

Obstacles find_slow_clock(Connection& home, Connection& opened, const Shards& shards,
                          const std::string& title)
{
    load_library(home);
    load_library(opened);
    const Result there = home.query(reached_sql, {sql_array(schemas_in(shards))});
    Obstacles found;
    found.read(opened, slow_clock_sql,
               {there.text(0, 0), there.text(0, 1), there.text(0, 2), title});
    return found;
}

ReadOnly read_only_of(Connection& server)
{
    /* This session has set another value. The ROLLBACK brings that back. */
    server.run("BEGIN; RESET default_transaction_read_only");
    const Result row = server.query(read_only_sql);
    server.rollback();
    return {row.text(0, 0), row.flag(0, 1), row.text(0, 2), row.text(0, 3)};
}

Obstacles find_read_only(Connection& home, Connection& opened)
{
    if (!is_read_only(opened) || is_read_only(home))
        return {};
    const ReadOnly setting = read_only_of(opened);
    if (setting.is_of_role)
        return {};
    return {{opened.server(),
             "default_transaction_read_only = on, from " + visible(setting.origin) +
                 ": clients could not write",
             visible(setting.remedy)}};
}
