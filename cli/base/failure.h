/* The errors and the exit codes of the command. ServerError is in postgres/connection.h. */

#pragma once

#include <stdexcept>

enum ExitCode { kDone = 0, kFound = 1, kWrongUsage = 2, kFailed = 3 };

/* UsageError ends the command with exit code 2, every other error with 3. It is no Failure, so a
 * set of servers (servers.h) does not take it for the failure of one server and go on with the
 * others. */
struct UsageError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct Failure : std::runtime_error {
    using std::runtime_error::runtime_error;
};
