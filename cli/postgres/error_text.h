/* Texts of errors. */

#pragma once

#include <string>

#include <libpq-fe.h>

/* The server repeats the whole text of a function's statement, which can be that of a file, as
 * QUERY or as the last line of the CONTEXT. The error without it. begin: of the text. */
std::string without_text(std::string error, const std::string& begin);

/* The text with its lines behind the first one indented. */
std::string indented(const std::string& text);

/* An error or a notice as libpq writes it, without the SQL of the command's own functions. A line
 * that a name or a RAISE of other roles has begun must not look like a message of the command, so
 * it is indented. */
std::string text_of(const PGresult* result);

/* A message of libpq without the newline at its end. */
std::string trimmed(const std::string& message);
