#include "postgres/advisory.h"

namespace
{

/* The halves of the key are in classid and objid. A prepared transaction has no pid; its
 * virtualtransaction ends with its XID. A role that may not read the statistics of others sees no
 * backend_start, and a role that was dropped has no name: concat_ws() leaves these out. */
const char* const kHolders = R"(
SELECT string_agg(DISTINCT CASE WHEN l.pid IS NULL THEN format('prepared transaction %L', gid)
                                ELSE concat_ws(', ', 'process ' || l.pid, 'role ' || quote_ident(usename),
                                               'application ' || NULLIF(application_name, ''),
                                               'connected since ' || backend_start::timestamp(0)) END, '; '),
       string_agg(DISTINCT CASE WHEN l.pid IS NULL THEN format('ROLLBACK PREPARED %L;', gid)
                                ELSE format('SELECT pg_terminate_backend(%s);', l.pid) END, ' ')
FROM pg_locks AS l CROSS JOIN hashtextextended($1, 0) AS key
LEFT JOIN pg_stat_activity AS a ON a.pid = l.pid
LEFT JOIN pg_prepared_xacts AS p ON l.pid IS NULL AND p.transaction::text = split_part(l.virtualtransaction, '/', 2)
WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
AND l.classid::bigint = (key >> 32) & 4294967295 AND l.objid::bigint = key & 4294967295
AND l.pid IS DISTINCT FROM pg_backend_pid())";

} // namespace

std::string holders_of(Connection& connection, const std::string& name)
{
    const Result holders = connection.query(kHolders, {name});
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
