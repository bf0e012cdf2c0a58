/* Files that are read as a whole. */

#pragma once

#include <string>

/* Failure if it cannot be read, with the reason. */
std::string read_file(const std::string& name);

/* A file that the command line names, - for the standard input. UsageError if it cannot be read. */
std::string read_given_file(const std::string& name);

/* Puts a file with this text in its place, in one step and on the disk: after a kill or a crash of
 * the machine it has the old text or the new one. Failure if it cannot be written. */
void write_file(const std::string& name, const std::string& text);
