#include "split/session.h"

namespace
{

const std::string kDoing = "splitting the server";

} // namespace

SplitServers::SplitServers(const Options& options) : old(options.from)
{
    withstand_settings(old);
    lock_name(old, kSplitSchema, kDoing);
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
