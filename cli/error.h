/* Errors of the command: UsageError ends it with exit code 2, every other one with 3. */

#pragma once

#include <stdexcept>
#include <string>

struct UsageError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct Failure : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct ServerError : Failure {
    ServerError(const std::string& message, std::string code)
        : Failure(message), sqlstate(std::move(code))
    {
    }
    std::string sqlstate;
};
