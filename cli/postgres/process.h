/* Other programs that the command runs. */

#pragma once

#include <string>
#include <vector>

/* Runs a program (pg_dump, pg_restore) without a shell and returns its standard output; its errors
 * go to our standard error, without control characters, when it has ended. The program beside this
 * command is of the server that the command was built for, and comes first; else the program in
 * PATH is taken. A password is passed in the environment, because ps shows arguments. Failure if
 * its exit status is not 0; "stopped" after Ctrl-C. */
std::string run_program(const std::string& name, const std::vector<std::string>& arguments,
                        const std::string& password = "");

/* Runs a command by /bin/sh with these variables (KEY=value) in its environment as well. Its output
 * goes to our standard error. Empty, or how it has failed: "has failed with exit status 7". */
std::string run_shell(const std::string& command, const std::vector<std::string>& variables);
