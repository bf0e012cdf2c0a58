/* Extended regular expressions of POSIX: the C library has them, and <regex> takes the compiler
 * five seconds in every file that includes it. */

#pragma once

#include <string>
#include <vector>

/* The first match and its groups, "" for one that took no part; nothing if there is no match, or
 * if the text has a zero byte. The pattern is a constant of the program: a wrong one is a
 * std::logic_error. */
std::vector<std::string> match(const std::string& text, const char* pattern);
