#include "postgres/advisory.h"

#include "sql/sql.h"

std::string holders_of(Connection& connection, const std::string& name)
{
    const Result holders = connection.query(lock_holders_sql, {name});
    if (holders.is_null(0, 0))
        return "";
    return "\nThe lock is held by " + holders.text(0, 0) +
           "\nHINT:  If that is no snowflake-shard at work: " + holders.text(0, 1);
}

/* The lock is of the session and not of a transaction, because a move commits many times. The
 * backend of a command that was killed ends soon, and so does its lock: 5 s is ten times
 * client_connection_check_interval. Two commands that take two locks of one cluster in different
 * orders are a deadlock. */
void lock_by_names(Connection& connection, const std::vector<std::string>& names,
                   const std::string& doing, std::chrono::milliseconds timeout)
{
    try {
        connection.run("BEGIN; SET LOCAL lock_timeout = " + std::to_string(timeout.count()) +
                       "; SELECT pg_advisory_lock(hashtextextended(name, 0)) FROM unnest(" +
                       connection.literal(sql_array(names)) + "::text[]) AS name; COMMIT");
    } catch (const ServerError& error) {
        connection.rollback();
        if (error.sqlstate != kLockTimeout && error.sqlstate != kDeadlock)
            throw;
        for (const std::string& name : names)
            if (const std::string holders = holders_of(connection, name); !holders.empty())
                throw Failure("another snowflake-shard is " + doing + ": it has locked " + name +
                              " on " + connection.server() + holders);
        throw;
    }
}

void lock_by_name(Connection& connection, const std::string& name, const std::string& doing,
                  std::chrono::milliseconds timeout)
{
    lock_by_names(connection, {name}, doing, timeout);
}
