/* The two servers of a split, locked; and its limits. */

#pragma once

#include <memory>
#include <string>

#include "move/session.h"
#include "split/state.h"
#include "verbs.h"

/* The standby is given up when it cannot be reached. */
struct SplitServers {
    explicit SplitServers(const Options& options);

    Connection old;
    std::unique_ptr<Connection> standby; /* none: it could not be reached */
    std::string why_unreached;

    /* An error if it could not be reached. */
    Connection& reached() const;
};

bool is_in_recovery(Connection& connection);

/* When its postmaster was started: a promotion that was requested before cannot come afterwards. */
std::string start_of(Connection& connection);
