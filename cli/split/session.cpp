#include "split/session.h"

#include "move/transaction.h"

namespace
{

/* The backend of a command that was killed ends soon, and so does its lock. */
void lock_split(Connection& connection)
{
    connection.run("SET lock_timeout = '5s'");
    try {
        connection.query("SELECT pg_advisory_lock(hashtextextended($1, 0))", {kSplitSchema});
    } catch (const ServerError& error) {
        if (error.sqlstate != kLockTimeout)
            throw;
        throw Failure("another snowflake-shard is splitting the server: it has locked " +
                      kSplitSchema + " on " + connection.server());
    }
    connection.run("SET lock_timeout = 0");
}

} // namespace

SplitServers::SplitServers(const Options& options) : old(options.from)
{
    withstand_settings(old);
    lock_split(old);
    try {
        standby = std::make_unique<Connection>(options.standby);
    } catch (const UsageError&) {
        throw;
    } catch (const Failure& error) {
        why_unreached = error.what();
        return;
    }
    if (old.server() == standby->server())
        throw UsageError("--from and --standby are the same: " + old.server());
    withstand_settings(*standby);
    lock_split(*standby);
}

Connection& SplitServers::reached() const
{
    if (standby == nullptr)
        throw Failure("the standby cannot be reached: " + why_unreached);
    return *standby;
}

bool is_in_recovery(Connection& connection)
{
    return connection.query("SELECT pg_is_in_recovery()").flag(0, 0);
}

std::string start_of(Connection& connection)
{
    return connection.query("SELECT extract(epoch FROM pg_postmaster_start_time())").text(0, 0);
}
