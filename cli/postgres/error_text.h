/* Texts of errors. */

#pragma once

#include <string>

/* The server repeats the whole text of a function's statement, which can be that of a file, as
 * QUERY or as the last line of the CONTEXT. The error without it. begin: of the text. */
std::string without_text(std::string error, const std::string& begin);

/* The lines of a server's message. A line in a name or in a RAISE of other roles must not look like
 * a message of the command, so it is indented. */
std::string with_lines_indented(const std::string& text);

/* A message of libpq without the newline at its end. */
std::string trimmed(const std::string& message);
