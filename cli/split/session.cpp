#include "split/session.h"

#include "postgres/extension.h"
#include "postgres/servers.h"

namespace
{

const std::string kDoing = "splitting the server";

} // namespace

SplitServers::SplitServers(const Options& options) : old(options.from)
{
    require_extension(old);
    withstand_settings(old);
    /* Before the record is read: it must not change between a check and the step after it. */
    lock_name(old, kSplitSchema, kDoing);
    try {
        standby = std::make_unique<Connection>(options.standby);
    } catch (const UsageError&) {
        /* The command line is wrong, whether the server runs or not. */
        throw;
    } catch (const Failure& error) {
        why_unreached = error.what();
        return;
    }
    if (is_same_server(old, *standby))
        throw UsageError("--from and --standby are the same: " + old.server());
    /* The lock of the old server is not on the standby, because advisory locks are not in the
     * WAL. */
    withstand_settings(*standby);
    lock_name(*standby, kSplitSchema, kDoing);
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
