/* The two servers of a split, locked; and its limits. */

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fleet/records.h"
#include "split/verb.h"

/* The standby is given up when it cannot be reached, because an --abort before the promotion does
 * not need it. Every other error ends the command: no connection to the old server, a lock that
 * another command holds, a connection string that cannot be read, twice the same server. */
struct SplitServers {
    explicit SplitServers(const SplitOptions& options);

    Connection old;
    std::unique_ptr<Connection> standby; /* none: it could not be reached */
    std::string why_unreached;

    /* An error if it could not be reached. */
    Connection& reached() const;
};

/* The record in the middle of a split. A Failure if it is gone, or not trusted any more. */
SplitState require_split(Connection& connection);

/* The shards in the record, if there is one: --resume and --abort take the shards that the split
 * began with, and do not look at --shards. Without a record, resume() and abort() raise the error,
 * and complete() has nothing to do. */
std::vector<SplitShard> shards_of(const SplitOptions& options, Connection& old);

bool is_in_recovery(Connection& connection);

/* The time when the postmaster was started: a promotion that was requested before cannot come
 * afterwards. It is in seconds since 1970, as text that does not depend on the TimeZone of the
 * session. */
std::string start_of(Connection& connection);
