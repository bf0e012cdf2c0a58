/* The standard output as a file to which one run after the other appends. */

#pragma once

#include <cstdint>
#include <string>

struct Appended {
    std::string file; /* its device and inode; empty if the output is no regular file with >> */
    std::int64_t length = 0;
};

Appended look_at_output();

/* Failure if the file cannot be cut. */
void cut_output(std::int64_t length);

/* Whether its last line has no end. */
bool ends_within_line();

/* On the disk. Failure if it cannot be written. */
void sync_output();
