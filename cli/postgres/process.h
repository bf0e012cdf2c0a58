/* Other programs that the command runs. */

#pragma once

#include <string>
#include <vector>

#include "base/clock.h"

/* One of PostgreSQL's programs. */
struct Program {
    std::string path;
    std::string version; /* "15.14"; empty if none that runs was found */

    /* pg_dump refuses a server of a later major version. */
    bool is_for(int server_version) const;
};

/* The program beside this command, those of other versions that Debian has beside it, and those in
 * PATH: the first of the server's own release (Connection::version()), because a later pg_dump can
 * write statements that the server refuses; else the first of a later release; else the first that
 * runs. */
Program find_program(const std::string& name, int server_version);

/* Runs a program without a shell and returns its standard output; its warnings go to our standard
 * error, without control characters, when it has ended. A password is passed in the environment,
 * because ps shows arguments. The program ends with this command, also after kill -9. Failure with
 * its messages if its exit status is not 0; "stopped" after Ctrl-C. */
std::string run_program(const std::string& path, const std::vector<std::string>& arguments,
                        const std::string& password = "");

/* Runs a command by /bin/sh with these variables (KEY=value) in its environment as well. The output
 * goes to our standard error. Empty, or how it has failed: "has failed with exit status 7". */
std::string run_shell(const std::string& command, const std::vector<std::string>& variables);

/* Runs a command by /bin/sh with this text as its standard input, and returns its standard output.
 * Failure, with its messages, if its exit status is not 0, or if it has not ended by the deadline.
 * Ctrl-C does not end it. */
std::string run_shell_with(const std::string& command, const std::string& input,
                           Clock::time_point deadline);
