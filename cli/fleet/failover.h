/* What a server that follows another one can lack after a failover to its standby. */

#pragma once

#include <string>

#include "postgres/connection.h"
#include "postgres/obstacles.h"

/* The server has synchronous_standby_names, and the worker of the subscription does not wait for
 * that standby: it confirms changes that the standby may lack. */
Obstacles find_unsynchronized(Connection& follower, const std::string& subscription);
