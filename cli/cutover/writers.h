/* Transactions that write to tables. */

#pragma once

#include <string>

#include "base/clock.h"
#include "postgres/connection.h"

/* Returns when those that write to the tables now have ended; Late if some have not by the
 * deadline. tables: a query of their OIDs. */
void await_writers(Connection& connection, const std::string& tables, Clock::time_point deadline);
