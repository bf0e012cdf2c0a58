/* Errors of the command, each with its exit code: 2 wrong usage, 3 failed. */

#pragma once

#include <stdexcept>
#include <string>

struct Failure : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct UsageError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/* An error that the server reported. */
struct ServerError : Failure {
    ServerError(const std::string& message, std::string code)
        : Failure(message), sqlstate(std::move(code))
    {
    }
    std::string sqlstate;
};
