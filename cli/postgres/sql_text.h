/* Names and constants in SQL text as the server writes it. It is read as with
 * standard_conforming_strings = on: a backslash is a character like others. The only comments are
 * those of pg_dump. All positions are bytes; an end is the position of the first byte that is no
 * part of it. */

#pragma once

#include <chrono>
#include <string>
#include <string_view>

/* A letter, a digit or _ as a part of a word. Each byte above 127 is one, too: it is a part of a
 * letter in UTF-8. */
bool is_word_part(char c);

/* The end of the string constant or the quoted name that begins here. */
std::size_t end_of_quoted(std::string_view sql, std::size_t begin);

/* The end of the token that begins here: a quoted name, a constant, also one between $$, a comment
 * to the end of its line, or a single character. */
std::size_t end_of_token(std::string_view sql, std::size_t begin);

/* The SQL with blanks in place of string constants and quoted names. A parenthesis or a word in one
 * is no code. */
std::string code_of(std::string sql);

/* A time as a value of lock_timeout; never 0, which is none. */
std::string milliseconds_of(double seconds);
std::string milliseconds_of(std::chrono::milliseconds time);

/* A wait for a lock, where the session has no lock_timeout of its own: a statement, without
 * PGOPTIONS, a role or a database with one. is_local: for the transaction. */
std::string lock_timeout_sql(std::chrono::milliseconds timeout, bool is_local);

/* The bytes from begin to the one before end. */
struct Range {
    std::size_t begin;
    std::size_t end;
};

/* Whether a name can be sent to the command: a database of encoding SQL_ASCII takes any bytes, and
 * the server refuses to send those that are not UTF-8. There each byte is a character of the
 * pattern. */
std::string is_utf8_sql(const std::string& name);

/* A text with such names in it, for messages: ? in the place of bytes that cannot be sent. */
std::string as_utf8_sql(const std::string& text);
