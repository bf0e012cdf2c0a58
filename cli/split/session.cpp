#include "split/session.h"

#include "postgres/advisory.h"
#include "postgres/extension.h"
#include "postgres/identity.h"
#include "postgres/settings.h"
#include "postgres/trust.h"

SplitServers::SplitServers(const SplitOptions& options) : old(options.from)
{
    require_extension(old);
    withstand_settings(old);
    /* Before the record is read: it must not change between a check and the step after it. */
    lock_by_name(old, kSplitSchema, "splitting the server");
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
    lock_by_name(*standby, kSplitSchema, "splitting the server");
}

Connection& SplitServers::reached() const
{
    if (standby == nullptr)
        throw Failure("the standby cannot be reached: " + why_unreached);
    return *standby;
}

SplitState require_split(Connection& connection)
{
    if (const auto state = read_split(connection))
        return *state;
    require_trusted_schema(connection, kSplitSchema);
    throw Failure("the record of the split, schema " + kSplitSchema + ", is gone from " +
                  connection.server());
}

bool is_in_recovery(Connection& connection)
{
    return connection.query("SELECT pg_is_in_recovery()").flag(0, 0);
}

std::string start_of(Connection& connection)
{
    return connection.query("SELECT extract(epoch FROM pg_postmaster_start_time())").text(0, 0);
}
