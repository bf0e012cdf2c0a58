/* Settings of a server that leave too few of what a command takes. */

#pragma once

#include <string>

#include "postgres/obstacles.h"

struct Need {
    std::size_t count = 0;
    std::string text{}; /* "a move takes 3" */
};

/* published: slots and senders. subscribed: workers and origins of subscriptions. workers: all
 * background workers, which these are, and sessions of owners. Sessions that began after this time
 * are of this command, and not in use already. */
Obstacles find_too_few(Connection& connection, const Need& published, const Need& subscribed,
                       const Need& workers, const std::string& began = "infinity");
