/* Texts of errors. */

#pragma once

#include <string>

/* The server repeats the whole text of a function's statement, which can be that of a file, as
 * QUERY or as the last line of the CONTEXT. The error without it. begin: of the text. */
std::string without_text(std::string error, const std::string& begin);
