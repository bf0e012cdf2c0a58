#include "replication/subscription.h"

#include "cutover/waiting.h"
#include "base/output.h"
#include "postgres/dsn.h"
#include "postgres/security.h"
#include "sql/sql.h"

namespace
{

/* A condition on the views of statistics, which have no database. */
const std::string kOfName =
    "subid = (SELECT oid FROM pg_subscription WHERE subname = $1 AND " + kOfDatabase + ")";

} // namespace

std::string dsn_of(const Connection& server, const std::string& given)
{
    std::string dsn = given;
    if (dsn.empty()) {
        const std::string password = server.password();
        dsn = server.address().dsn() + " " + dsn_setting("user", server.user()) +
              security_of(server) +
              (password.empty() ? "" : " " + dsn_setting("password", password));
    }
    /* Settings of the role must not end the copy of a table, or hide rows from it: with
     * row_security = off a policy is an error. Minor releases before 2026 may ignore these options
     * (docs/command.md). A server refuses a connection that names a setting which it does not
     * know. */
    return dsn_with_options(dsn,
                            std::string("-c statement_timeout=0 -c lock_timeout=0 "
                                        "-c idle_in_transaction_session_timeout=0 "
                                        "-c idle_session_timeout=0 -c row_security=off") +
                                (server.version() >= 170000 ? " -c transaction_timeout=0" : ""));
}

/* By default a worker commits with synchronous_commit = off, and confirms to the slot what is
 * flushed here, whether the synchronous standby has it or not. After a failover to that standby
 * these changes would not be sent again. Elsewhere off is right: with on each transaction would
 * wait for a flush of its own. */
std::string subscription_sql(Connection& subscriber, const std::string& name,
                             const std::string& publication, const std::string& dsn,
                             const std::string& options)
{
    find_missing_crl(subscriber, dsn).raise_first();
    const bool has_standby =
        subscriber.query("SELECT current_setting('synchronous_standby_names') <> ''").flag(0, 0);
    return "CREATE SUBSCRIPTION " + name + " CONNECTION " + subscriber.literal(dsn) +
           " PUBLICATION " + publication + " WITH (create_slot = false, " +
           (has_standby ? "synchronous_commit = on, " : "") + options + ")";
}

std::string failover_option(const Connection& subscriber, const Connection& publisher)
{
    const bool has_option = subscriber.version() >= 170000 && publisher.version() >= 170000;
    return has_option ? ", failover = true" : "";
}

std::string removal_of(const std::string& name)
{
    return "ALTER SUBSCRIPTION " + name + " DISABLE; ALTER SUBSCRIPTION " + name +
           " SET (slot_name = NONE); DROP SUBSCRIPTION " + name + ";";
}

/* Two commands can deadlock here: each ALTER locks pg_subscription in ROW EXCLUSIVE mode, and DROP
 * in ACCESS EXCLUSIVE mode. */
void drop_subscription(Connection& subscriber, const std::string& name, Clock::time_point deadline)
{
    lock_and_run(subscriber, deadline, [&] { subscriber.run(removal_of(name)); });
}

/* From 16 on the apply worker can have parallel ones, with its pid as their leader_pid; to_jsonb(),
 * because 15 has no such column. The view has a row for each subscription, with pid NULL if no
 * worker runs. */
std::string find_worker(Connection& subscriber, const std::string& name)
{
    const Result worker =
        subscriber.query("SELECT pid FROM pg_stat_subscription AS w WHERE " + kOfName +
                             " AND pid IS NOT NULL AND to_jsonb(w)->>'leader_pid' IS NULL",
                         {name});
    return worker.rows() > 0 ? worker.text(0, 0) : "";
}

/* The columns are found by the end of their names, because PostgreSQL 19 has renamed one of them,
 * and has one more. */
std::int64_t count_failures(Connection& subscriber, const std::string& name)
{
    const Result count = subscriber.query(R"(
        SELECT coalesce(sum(value::bigint), 0)
        FROM pg_stat_subscription_stats AS s CROSS JOIN jsonb_each_text(to_jsonb(s))
        WHERE )" + kOfName + R"( AND key LIKE '%\_error\_count')",
                                          {name});
    return count.number(0, 0);
}

Obstacles find_missing_rights(Connection& subscriber, const Owners& owners, const std::string& dsn)
{
    const Result role =
        subscriber.query("SELECT current_setting('is_superuser'), quote_ident(current_user)");
    if (role.text(0, 0) == "on")
        return {};
    const std::string name = visible(role.text(0, 1));
    if (subscriber.version() < 160000)
        return {{subscriber.server(),
                 "role " + name + " may not make a subscription: before PostgreSQL 16 only a " +
                     "superuser may",
                 "Connect to that server as a superuser."}};
    Obstacles found;
    found.read(subscriber, subscription_rights_sql, {owners.names, owners.objects});
    /* password_required is true, so libpqrcv_check_conninfo() looks for the password in the string
     * itself: one in the ~/.pgpass of the server does not count. */
    if (!has_password(dsn))
        found.add(
            subscriber.server(),
            "a subscription of role " + name +
                ", which is no superuser, takes a password of the other server",
            "Give a connection string with a password as --source, or as --target for reverse "
            "replication.");
    return found;
}

Obstacles find_missing_advance(Connection& subscriber)
{
    Obstacles found;
    found.read(subscriber, R"(
        SELECT format('role %I may not set the position of replication', current_user),
               format('GRANT EXECUTE ON FUNCTION pg_replication_origin_advance(text, pg_lsn) TO %I;', current_user)
        WHERE NOT has_function_privilege('pg_catalog.pg_replication_origin_advance(text, pg_lsn)', 'EXECUTE'))");
    return found;
}

void begin_at(Connection& subscriber, const std::string& name, const std::string& position)
{
    subscriber.query("SELECT pg_replication_origin_advance('pg_' || oid, $2::pg_lsn) "
                     "FROM pg_subscription WHERE subname = $1 AND " +
                         kOfDatabase,
                     {name, position});
}
