/* Facts that an operator of both servers has to know, and that stop no split. */

#include "base/output.h"
#include "postgres/dsn.h"
#include "postgres/trust.h"
#include "split/command.h"
#include "split/standby.h"

namespace
{

/* The writer that the trigger on a follower names; empty if there is none. */
std::string writer_of_global_tables(Connection& old)
{
    const Result found = old.query(R"(
        SELECT substring(prosrc FROM 'It is written on (.*)\.')
        FROM pg_proc JOIN pg_namespace AS n ON n.oid = pronamespace
        WHERE nspname = 'snowflake_global' AND proname = 'refuse' AND )" +
                                   is_trusted("proowner"));
    return found.rows() == 0 ? "" : found.text(0, 0);
}

} // namespace

void tell_of_global_tables(Connection& old, Connection& standby, const std::string& when)
{
    const Result databases = old.query(R"(
        SELECT database, true FROM pg_replication_slots
        WHERE slot_type = 'logical' AND starts_with(slot_name, 'snowflake_global_')
        UNION
        SELECT datname, false FROM pg_subscription JOIN pg_database AS d ON d.oid = subdbid
        WHERE starts_with(subname, 'snowflake_global_')
        ORDER BY 1, 2)");
    for (int i = 0; i < databases.rows(); i++) {
        const auto quoted_dsn = [&](const Connection& server) {
            Address address = server.address();
            address.database = databases.text(i, 0);
            return shell_quoted(printed_dsn(address, server.dsn()));
        };
        const std::string servers = quoted_dsn(old) + " " + quoted_dsn(standby);
        const std::string place = "database " + visible(databases.text(i, 0));
        if (databases.flag(i, 1)) {
            warn(place +
                 " writes global tables, and the new server has a copy of their "
                 "publication. They are written on the old server; the new one must have "
                 "the same rows.\nHINT:  " +
                 when + "psql " + quoted_dsn(standby) +
                 " -c 'DROP PUBLICATION snowflake_global' && snowflake-shard global add --on " +
                 servers);
            continue;
        }
        const std::string writer =
            databases.text(i, 0) == old.database() ? writer_of_global_tables(old) : "";
        warn(place +
             " follows global tables, and the new server has the same subscription with "
             "the same slot. Enable neither by hand.\nHINT:  " +
             when + "snowflake-shard global add --on " +
             (writer.empty() ? "WRITER" : shell_quoted(address_of(writer).dsn())) + " " + servers);
    }
}

void tell_of_both_servers(Connection& old, Connection& standby)
{
    const Result jobs = old.query("SELECT FROM pg_extension WHERE extname = 'pg_cron'");
    if (jobs.rows() > 0)
        warn("pg_cron: its jobs will run on both servers; cron.job lists them");
    tell_of_global_tables(old, standby, "After the split: ");
    /* NULL, and so an empty text, if nothing is archived. It is a warning, because the same command
     * may lead to another folder on another machine. */
    const std::string archive = R"(
        SELECT CASE WHEN current_setting('archive_mode') <> 'off'
                    THEN current_setting('archive_command') || current_setting('archive_library') END)";
    const std::string of_old = old.query(archive).text(0, 0);
    if (!of_old.empty() && of_old == standby.query(archive).text(0, 0))
        warn("both servers archive by the same command or library: each writes its own timeline "
             "into the same place. Give the new server a place, and a base backup, of its own.");
    for (const std::string& slot : logical_slots(old))
        warn("slot " + slot + ": changes of the shards that leave come from " + old.server() +
             " until the cutover, and then from a slot of this name that " + standby.server() +
             " gets (docs/change-data.md)");
}
