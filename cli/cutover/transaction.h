/* Work that ends by a deadline, also when others hold its locks or the server hangs. */

#pragma once

#include <functional>

#include "base/clock.h"
#include "postgres/connection.h"

/* For a Watch: a statement that has not ended by the deadline is Late. */
std::function<void()> late_at(const Connection& connection, Clock::time_point deadline);

/* It waits for locks for a short time only, because everybody else waits behind it, and tries again
 * until the deadline. Then it is Late. Each try calls work() in a new transaction, so work() must
 * do no harm if it is repeated. An error that is not of a lock is thrown at once. */
void lock_and_run(Connection& connection, Clock::time_point deadline,
                  const std::function<void()>& work);
